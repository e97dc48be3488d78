/**
 * How many rows were ever inserted, updated and deleted, by table, including rolled-back changes: what a test has
 * changed in a store.
 */
export type RowCounts = ReadonlyMap<string, string>

/** Each statement that changes the schema writes to one of these. */
export const schemaCatalogs = ["pg_class", "pg_proc", "pg_trigger", "pg_constraint", "pg_attribute"]

/** Rows of a table and its count, for the tables of the service and these catalogs. */
export const rowCountsSql = (catalogs: ReadonlyArray<string>): string => `
  SELECT oid::regclass::text AS name, format('%s %s %s', pg_stat_get_tuples_inserted(oid),
    pg_stat_get_tuples_updated(oid), pg_stat_get_tuples_deleted(oid)) AS count
  FROM pg_class WHERE relkind = 'r'
    AND (relnamespace = 'public'::regnamespace OR oid = ANY ('{${catalogs.join(",")}}'::regclass[]))`

/** Calls that set the sequences to their current values. */
export const sequencesSql = `
  SELECT format('setval(%L, %s, %L)', format('%I.%I', schemaname, sequencename),
    coalesce(last_value, start_value), last_value IS NOT NULL) AS name FROM pg_sequences`
