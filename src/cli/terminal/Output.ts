import { Console, Effect } from "effect"
import type { Schema } from "effect"
import { Json } from "./Settings.ts"

/** The result of a command: the document with `--json`, or else the text. */
export const print = Effect.fnUntraced(function* (document: unknown, text: string) {
  yield* Console.log((yield* Json) ? JSON.stringify(document, null, 2) : text)
})

/** One event of a stream: one line of JSON with `--json`, or else the text. */
export const printEvent = Effect.fnUntraced(function* (event: Schema.Json, text: string) {
  yield* Console.log((yield* Json) ? JSON.stringify(event) : text)
})

/** A diagnostic, not part of the result. */
export const note = (text: string) => Console.error(text)
