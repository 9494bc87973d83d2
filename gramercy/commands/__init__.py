"""The commands, by who gives them; `gramercy.cli` puts them together."""
