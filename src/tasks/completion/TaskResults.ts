import { Context, Effect, Layer, Option, Schema } from "effect"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import type { OpenedArtifact } from "../../artifacts/Artifacts.ts"
import { AppConfig } from "../../config/Config.ts"
import { ArtifactId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { MediaFetch } from "../../egress/MediaFetch.ts"

/** A result with its bytes. */
export interface ReadResult {
  /** Absent if the result was not copied, because the type that the vendor's host declares is not used. */
  readonly mime: string | undefined
  readonly bytes: Uint8Array
}

export interface ReadRequest {
  readonly bytesMax: number
  /** The user or address whose share of the downloads this uses. */
  readonly caller: string
}

/** Opens the results of a task, for routes that return the media themselves. docs/reference/shapes.md */
export class TaskResults extends Context.Service<
  TaskResults,
  {
    /** Fails with 2005 if the result has expired or is larger than allowed. */
    readonly read: (
      url: string,
      request: ReadRequest
    ) => Effect.Effect<ReadResult, Problem | StoreUnavailable>
    /**
     * `None`: the result was not copied and is available only at its original URL. Fails with 2005 and 2012, as the
     * link itself does.
     */
    readonly open: (
      url: string
    ) => Effect.Effect<Option.Option<OpenedArtifact>, Problem | StoreUnavailable>
    /** Removes the copies of these results. */
    readonly remove: (urls: ReadonlyArray<string>) => Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/TaskResults") {
  static readonly layer = Layer.effect(
    TaskResults,
    Effect.gen(function* () {
      const artifacts = yield* Artifacts
      const media = yield* MediaFetch
      const { baseUrl } = yield* AppConfig
      const own = `${baseUrl}/artifacts/`

      /** Splits a link of this service into its parts. */
      const linkOf = (url: string) => {
        if (!url.startsWith(own)) return Option.none()
        const { pathname, searchParams } = new URL(url)
        return Option.map(decodeId(pathname.split("/").at(-1)), (id) => ({
          id,
          expires: searchParams.get("expires") ?? "",
          signature: searchParams.get("signature") ?? ""
        }))
      }

      const read = Effect.fn("TaskResults.read")(function* (
        url: string,
        { bytesMax, caller }: ReadRequest
      ) {
        const link = linkOf(url)
        if (Option.isNone(link)) {
          return yield* Effect.match(
            media.fetch({ url, bytesMax, caller, schemes: ["https", "http"] }),
            {
              onFailure: () => undefined,
              onSuccess: (bytes): ReadResult => ({ mime: undefined, bytes })
            }
          )
        }
        const row = yield* artifacts.find(link.value.id)
        if (Option.isNone(row) || row.value.bytes > bytesMax) return
        const bytes = Option.getOrUndefined(yield* artifacts.read(link.value.id))
        return bytes === undefined ? undefined : { mime: row.value.mime, bytes }
      })

      return TaskResults.of({
        read: (url, request) =>
          Effect.filterOrFail(
            read(url, request),
            (result) => result !== undefined,
            () => unreadable
          ),
        remove: (urls) =>
          Effect.asVoid(
            artifacts.remove(urls.flatMap((url) => Option.toArray(linkOf(url))).map(({ id }) => id))
          ),
        open: (url) =>
          Option.match(linkOf(url), {
            onNone: () => Effect.succeedNone,
            onSome: ({ expires, id, signature }) =>
              Effect.asSome(artifacts.open(id, expires, signature))
          })
      })
    })
  )
}

const decodeId = Schema.decodeUnknownOption(ArtifactId)

const unreadable = problem(2005, "The result cannot be read: it is gone, or too large")
