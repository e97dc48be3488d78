import { DateTime, Effect } from "effect"
import type { Array as Arr } from "effect"
import { Buffer } from "node:buffer"
import type { Images } from "../../contract/ImagesApi.ts"
import type { UserId } from "../../domain/Ids.ts"
import { inlineImageBytesMax } from "../../domain/limits/ShapeLimits.ts"
import { TaskResults } from "../../tasks/completion/TaskResults.ts"
import type { ReadResult } from "../../tasks/completion/TaskResults.ts"
import type { TaskView } from "../tasks/CreatedTask.ts"
import type { ImageFormat } from "./ImageRequest.ts"

/**
 * Completed tasks in OpenAI's format for images. Without a requested format, each image also has its bytes if they are
 * available. docs/reference/shapes.md#images
 */
export const makeImageResponse = Effect.gen(function* () {
  const results = yield* TaskResults
  const readAll = Effect.fnUntraced(function* (urls: ReadonlyArray<string>, caller: UserId) {
    const pictures: Array<ReadResult & { readonly url: string }> = []
    let left = inlineImageBytesMax
    for (const url of urls) {
      const picture = yield* results.read(url, { bytesMax: left, caller })
      left -= picture.bytes.length
      pictures.push({ ...picture, url })
    }
    return pictures
  })
  return Effect.fnUntraced(function* (
    tasks: Arr.NonEmptyReadonlyArray<TaskView>,
    format: ImageFormat
  ): Effect.fn.Return<typeof Images.Encoded, Effect.Error<ReturnType<typeof readAll>>> {
    const urls = tasks.flatMap(({ result }) => result ?? [])
    const ends = tasks.map(({ updatedAt }) => DateTime.toEpochMillis(updatedAt))
    const created = Math.floor(Math.max(...ends) / 1000)
    const byUrl = { created, data: urls.map((url) => ({ url })) }
    if (format === "url") return byUrl
    const inline = Effect.map(readAll(urls, tasks[0].userId), (pictures) => {
      const mime = pictures[0]?.mime
      return {
        created,
        ...(mime === undefined ? {} : { output_format: mime.replace("image/", "") }),
        data: pictures.map(({ bytes, url }) => ({
          b64_json: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64"),
          ...(format === undefined ? { url } : {})
        }))
      }
    })
    return yield* format === undefined ? Effect.orElseSucceed(inline, () => byUrl) : inline
  })
})
