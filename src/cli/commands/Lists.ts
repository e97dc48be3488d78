import { Effect, Option, Schema } from "effect"
import { Argument, Flag } from "effect/cli"
import { foreign, Management } from "../Management.ts"
import type { Caller } from "../Management.ts"
import { note, print } from "../terminal/Output.ts"
import { table } from "../terminal/Table.ts"
import type { Column } from "../terminal/Table.ts"

/** Flags of every list. */
export const pageFlags = {
  limit: Flag.Int("limit").pipe(
    Flag.withDescription("Maximum number of rows"),
    Flag.filter(
      (it) => it > 0,
      () => "Expected a number above 0"
    ),
    Flag.withDefault(20)
  ),
  cursor: Flag.String("cursor").pipe(
    Flag.withDescription("Continue after an earlier list, by its next_cursor"),
    Flag.optional
  )
}

/** For the operator: the user. */
export const ofUser = {
  user: Flag.String("user").pipe(
    Flag.withMetavar("USER_ID"),
    Flag.withDescription("As the operator: list those of this user"),
    Flag.optional
  )
}

/** The operator reads a user's list, or the user its own. */
export const readerOf = (user: Option.Option<string>) => ({
  as: Option.isSome(user) ? ("operator" as const) : ("user" as const),
  query: { user_id: Option.getOrUndefined(user) }
})

export const id = (name: string, description: string) =>
  Argument.String(name).pipe(
    Argument.withDescription(description),
    Argument.filter(
      (it) => /^(?!\.{1,2}$)[\w./:-]{1,200}$/u.test(it),
      () => `Expected ${description}`
    )
  )

/** Times of a filter. */
export const timeFlags = {
  since: Flag.String("since").pipe(
    Flag.withDescription("Created at this time or later, such as 2026-01-31T12:00:00Z"),
    Flag.optional
  ),
  until: Flag.String("until").pipe(Flag.withDescription("Created before this time"), Flag.optional)
}

const pageSizeMax = 100

export interface ListRequest {
  readonly path: string
  readonly as: Caller
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly limit: number
  readonly cursor: Option.Option<string>
}

/** Pages of a list, until there are `limit` rows or the list ends. docs/reference/http.md#lists */
export const readList = Effect.fnUntraced(function* <S extends Schema.ConstraintDecoder<unknown>>(
  { as, cursor, limit, path, query }: ListRequest,
  row: S
) {
  const api = yield* Management
  const page = Schema.Struct({
    data: Schema.Array(Schema.Json),
    next_cursor: Schema.NullOr(Schema.String)
  })
  const rows: Array<Schema.Json> = []
  let next: string | null = Option.getOrNull(cursor)
  do {
    const size = String(Math.min(pageSizeMax, limit - rows.length))
    const request = { path, as, query: { ...query, limit: size, cursor: next ?? undefined } }
    const { value } = yield* api.read(request, page)
    rows.push(...value.data)
    next = value.next_cursor
  } while (next !== null && rows.length < limit)
  const decoded = yield* Effect.mapError(Schema.decodeEffect(Schema.Array(row))(rows), () =>
    foreign(api.url, `a row of ${path} has an unexpected form`)
  )
  return { document: { data: rows, next_cursor: next }, rows: decoded, next }
})

/** A list as a table, or as the document of the API. */
export const printList = Effect.fnUntraced(function* <S extends Schema.ConstraintDecoder<unknown>>(
  request: ListRequest,
  row: S,
  columns: ReadonlyArray<Column<S["Type"]>>
) {
  const { document, next, rows } = yield* readList(request, row)
  yield* print(document, rows.length === 0 ? "Nothing found" : table(rows, columns))
  if (next !== null) yield* note(`There are more: --cursor ${JSON.stringify(next)}`)
})
