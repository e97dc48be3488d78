import { Console, Effect } from "effect"
import type { Schema } from "effect"
import { Json } from "./Settings.ts"

/** Prints the result of a command: with `--json` the document, otherwise the text. */
export const print = Effect.fnUntraced(function* (document: unknown, text: string) {
  yield* Console.log((yield* Json) ? JSON.stringify(document, null, 2) : text)
})

/** Prints one event of a stream: with `--json` one line of JSON, otherwise the text. */
export const printEvent = Effect.fnUntraced(function* (event: Schema.Json, text: string) {
  yield* Console.log((yield* Json) ? JSON.stringify(event) : text)
})

/** Prints a diagnostic to stderr, because it is not part of the result. */
export const note = (text: string) => Console.error(text)
