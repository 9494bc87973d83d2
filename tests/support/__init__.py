"""What tests share: tables, archives, databases, servers, faults."""
