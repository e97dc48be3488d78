import { Effect, Stream } from "effect"
import { memberOf } from "../../domain/json/JsonBytes.ts"
import { batchLineBytesMax } from "../../domain/limits/FileLimits.ts"
import { LineSplitter } from "../../domain/Lines.ts"
import type { Line } from "../../domain/Lines.ts"
import { digestOf } from "./ResultLine.ts"

/** The model of each request that does not use the batch's first model, by the digest of the request's `custom_id`. */
export type NamedModels = ReadonlyMap<string, string>

/** Reads from the file of an accepted batch of messages which model each request names. */
export const namedModels = <E>(
  file: Stream.Stream<Uint8Array, E>,
  first: string | undefined
): Effect.Effect<NamedModels, E> =>
  Effect.suspend(() => {
    const models = new Map<string, string>()
    // Keeps one string per model rather than one per request
    const texts = new Map<string, string>()
    const splitter = new LineSplitter(batchLineBytesMax)
    const add = (lines: ReadonlyArray<Line>) => {
      for (const { bytes } of lines) {
        const params = memberOf(bytes, "params")
        const model = params === undefined ? undefined : textOf(params, "model")
        const customId = textOf(bytes, "custom_id")
        if (model === undefined || customId === undefined || model === first) continue
        const text = texts.get(model) ?? model
        texts.set(text, text)
        models.set(digestOf(customId), text)
      }
    }
    return Stream.runForEach(file, (chunk) => Effect.sync(() => add(splitter.push(chunk)))).pipe(
      Effect.map(() => {
        add(splitter.end())
        return models
      })
    )
  })

const textOf = (bytes: Uint8Array, key: string): string | undefined => {
  const member = memberOf(bytes, key)
  const value: unknown =
    member === undefined ? undefined : JSON.parse(Buffer.from(member).toString("utf8"))
  return typeof value === "string" ? value : undefined
}
