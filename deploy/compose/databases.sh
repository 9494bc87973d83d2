#!/bin/sh
# Two databases with an owner each, so that neither service reads or changes that of the other.
# Run once by the PostgreSQL image, when its volume is new.
set -eu
for role in ledger prefect; do
  psql --quiet --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set ON_ERROR_STOP=1 --set role="$role" \
    --set password="$(cat "${SECRETS:-/run/secrets}/$role-password")" <<'SQL'
CREATE ROLE :"role" LOGIN PASSWORD :'password';
CREATE DATABASE :"role" OWNER :"role";
REVOKE ALL ON DATABASE :"role" FROM PUBLIC;
SQL
done
