import { Effect, Option } from "effect"
import { Argument, Flag } from "effect/cli"
import { pageSizeMax } from "../../domain/limits/Limits.ts"
import { Management } from "../Management.ts"
import type { CommandFault } from "../terminal/Fault.ts"
import { note, print } from "../terminal/Output.ts"
import { table } from "../terminal/Table.ts"
import type { Column } from "../terminal/Table.ts"

/** Flags that every list has. */
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

/** The operator's flag that selects a user. */
export const ofUser = {
  user: Flag.String("user").pipe(
    Flag.withMetavar("USER_ID"),
    Flag.withDescription("As the operator: for this user"),
    Flag.optional
  )
}

/** Lets the operator read a user's list, and a user its own. */
export const readBy = (
  user: Option.Option<string>,
  query: Readonly<Record<string, string | undefined>> = {}
) => ({
  as: Option.isSome(user) ? ("operator" as const) : ("user" as const),
  query: { ...query, user_id: Option.getOrUndefined(user) }
})

export const id = (name: string, description: string) =>
  Argument.String(name).pipe(
    Argument.withDescription(description),
    Argument.filter(
      (it) => /^(?!\.{1,2}$)[\w./:-]{1,200}$/u.test(it),
      () => `Expected ${description}`
    )
  )

/** Flags that filter by time. */
export const timeFlags = {
  since: Flag.String("since").pipe(
    Flag.withDescription("Created at this time or later, such as 2026-01-31T12:00:00Z"),
    Flag.optional
  ),
  until: Flag.String("until").pipe(Flag.withDescription("Created before this time"), Flag.optional)
}

interface Page<Row> {
  readonly data: ReadonlyArray<Row>
  readonly next_cursor: string | null
}

type ReadPage<Row> = (
  api: Management["Service"],
  query: { readonly limit: string; readonly cursor: string | undefined }
) => Effect.Effect<Page<Row>, CommandFault>

interface Wanted {
  readonly limit: number
  readonly cursor: Option.Option<string>
}

/** Reads pages until there are `limit` rows or the list ends. docs/reference/http.md#lists */
export const readList = Effect.fnUntraced(function* <Row>(
  read: ReadPage<Row>,
  { cursor, limit }: Wanted
) {
  const api = yield* Management
  const data: Array<Row> = []
  let next: string | null = Option.getOrNull(cursor)
  do {
    const size = String(Math.min(pageSizeMax, limit - data.length))
    const page: Page<Row> = yield* read(api, { limit: size, cursor: next ?? undefined })
    data.push(...page.data)
    next = page.next_cursor
  } while (next !== null && data.length < limit)
  return { data, next_cursor: next }
})

/** Prints a list as a table, or as the API's JSON. */
export const printList = Effect.fnUntraced(function* <Row>(
  read: ReadPage<Row>,
  wanted: Wanted,
  columns: ReadonlyArray<Column<Row>>
) {
  const document = yield* readList(read, wanted)
  const { data, next_cursor: next } = document
  yield* print(document, data.length === 0 ? "Nothing found" : table(data, columns))
  if (next !== null) yield* note(`There are more: --cursor ${JSON.stringify(next)}`)
})
