#!/bin/sh
# Writes random passwords and the folders of compose.yaml, each readable by one service only. What
# exists is kept, so that it is safe to run again. Run as root, who may give files away.
set -eu
cd "$(dirname "$0")"
umask 077
gramercy=10001 postgres=999 # the users in the containers

mkdir -p secrets keys contracts requests tables
for role in postgres ledger prefect; do
  if [ ! -e "secrets/$role-password" ]; then
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > "secrets/$role-password"
  fi
done
if [ ! -e secrets/prefect-login ]; then # of Prefect's API and pages
  printf 'gramercy:%s' "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" > secrets/prefect-login
fi
: >> secrets/alerts-url # addresses of alerts, if there are to be any
for role in ledger prefect; do
  printf 'postgres:5432:%s:%s:%s\n' "$role" "$role" "$(cat "secrets/$role-password")" \
    > "secrets/$role.pgpass"
done
if [ "$(id -u)" = 0 ]; then
  chown "$postgres" secrets/*-password
  chown "$gramercy" secrets/*.pgpass secrets/prefect-login secrets/alerts-url keys contracts \
    requests tables
else
  echo "Not root: give secrets/*-password to user $postgres, and all other secrets, keys," \
    "contracts, requests and tables to user $gramercy." >&2
fi
