/**
 * How many rows have ever been inserted, updated and deleted, by table, including rolled-back changes. Shows what a
 * test has changed in a store.
 */
export type RowCounts = ReadonlyMap<string, string>

/** Every statement that changes the schema writes to one of these. */
export const schemaCatalogs = ["pg_class", "pg_proc", "pg_trigger", "pg_constraint", "pg_attribute"]

/** SQL for the number of rows and the count of changes of each table, for the service's tables and these catalogs. */
export const rowCountsSql = (catalogs: ReadonlyArray<string>): string => `
  SELECT oid::regclass::text AS name, format('%s %s %s', pg_stat_get_tuples_inserted(oid),
    pg_stat_get_tuples_updated(oid), pg_stat_get_tuples_deleted(oid)) AS count
  FROM pg_class WHERE relkind = 'r'
    AND (relnamespace = 'public'::regnamespace OR oid = ANY ('{${catalogs.join(",")}}'::regclass[]))`

/** SQL that generates calls that reset the sequences to their current values. */
export const sequencesSql = `
  SELECT format('setval(%L, %s, %L)', format('%I.%I', schemaname, sequencename),
    coalesce(last_value, start_value), last_value IS NOT NULL) AS name FROM pg_sequences`
