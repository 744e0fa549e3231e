#!/bin/sh
# Creates or upgrades the schema of both Temporal databases. Running it again changes nothing; a newer
# admin-tools image brings a newer schema.
set -eu
for name in temporal visibility; do
  db=temporal
  [ "$name" = visibility ] && db=temporal_visibility
  temporal-sql-tool --database "$db" create-database
  temporal-sql-tool --database "$db" setup-schema -v 0.0
  temporal-sql-tool --database "$db" update-schema -d "/etc/temporal/schema/postgresql/v12/$name/versioned"
done
