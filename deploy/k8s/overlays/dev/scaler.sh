# Run once by Postgres' image, for a new database: the role that KEDA reads the demand as. It may read nothing else.
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$SCALER_PASSWORD" <<'SQL'
CREATE ROLE windlass_scaler LOGIN CONNECTION LIMIT 30 PASSWORD :'password';
ALTER ROLE windlass_scaler SET default_transaction_read_only = on;
SQL
