import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { resultBytesMax } from "../../../src/domain/limits/Limits.ts"
import type { MediaKind } from "../../../src/domain/task/Task.ts"
import { renderGlb } from "../../../src/sandbox/media/GlbFile.ts"
import { resultStream } from "../../../src/tasks/completion/ResultStream.ts"
import { jpeg } from "../../support/media.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"

/** A download in pieces, with a count of those read. */
const download = (mime: string, pieces: ReadonlyArray<Uint8Array>, announced?: number) => {
  const counted = { pieces: 0 }
  const stream = Stream.fromIterable(pieces).pipe(
    Stream.rechunk(1),
    Stream.tap(() => Effect.sync(() => void (counted.pieces += 1)))
  )
  return { counted, from: { mime, stream, ...(announced === undefined ? {} : { announced }) } }
}

const glb = renderGlb({ prompt: "A pyramid", seed: 7 })
const mp4 = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from("ftypisom")])
const bytewise = (bytes: Uint8Array) => [...bytes].map((byte) => Uint8Array.of(byte))

describe("a download becomes a result", () => {
  const taken: ReadonlyArray<readonly [string, string, Uint8Array, string, MediaKind?]> = [
    ["under its declared type", "image/png", pixel, "image/png"],
    ["under the type of its first bytes", "image/png", jpeg(), "image/jpeg"],
    ["as a video", "application/octet-stream", Buffer.concat([mp4, pixel]), "video/mp4"],
    ["as an SVG that is declared as one", "image/svg+xml", Buffer.from("<svg/>"), "image/svg+xml"],
    [
      "under a type without known first bytes",
      "video/webm",
      Buffer.from("\x1aE\xdf"),
      "video/webm"
    ],
    ["as a 3D file", "application/octet-stream", glb, "model/gltf-binary", "meshes"],
    ["as a 3D archive", "application/zip", Buffer.from("PK\x03\x04"), "application/zip", "meshes"],
    ["as a 3D scene in text", "model/gltf+json", Buffer.from("{}"), "model/gltf+json", "meshes"],
    ["as JSON", "application/octet-stream", Buffer.from("[1]"), "application/json", "documents"]
  ]
  for (const [what, declared, bytes, mime, kind = "images"] of taken) {
    it.effect(`${what}, complete, however it is split`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          for (const pieces of [[bytes], bytewise(bytes)]) {
            const got = yield* resultStream(download(declared, pieces).from, kind)
            assert.strictEqual(got.mime, mime)
            const all = Buffer.concat([...(yield* Stream.runCollect(got.stream))])
            assert.isTrue(all.equals(bytes))
          }
        })
      )
    )
  }

  const refused: ReadonlyArray<readonly [string, string, string, MediaKind?]> = [
    ["a page", "image/png", "<!doctype html>"],
    ["a page without a declared type", "application/octet-stream", "<html>"],
    ["JSON", "video/mp4", '{"error":{}}'],
    ["a PDF", "application/octet-stream", "%PDF-1.7"],
    ["a picture without the first bytes of one", "image/webp", "not found"],
    ["empty", "video/mp4", ""],
    ["an error as a 3D file", "model/gltf-binary", '{"error":{}}', "meshes"],
    ["a page as a 3D file", "model/gltf-binary", "<html>", "meshes"],
    ["text as JSON", "application/json", "not found", "documents"],
    ["a page as JSON", "application/json", "<html>", "documents"]
  ]
  for (const [what, declared, text, kind = "images"] of refused) {
    it.effect(`but fails as LOST if it is ${what}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { from } = download(declared, [Buffer.from(text)])
          const error = yield* Effect.flip(resultStream(from, kind))
          assert.strictEqual(error.class, "LOST", error.message)
        })
      )
    )
  }

  it.effect("but nothing of it is read if it is announced as too large", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { counted, from } = download("image/png", [pixel], resultBytesMax + 1)
        assert.match(
          (yield* Effect.flip(resultStream(from, "images"))).message,
          /larger than 268435456/u
        )
        assert.strictEqual(counted.pieces, 0)
      })
    )
  )

  it.effect("but ends at the first byte above the limit if it is too large", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const piece = Buffer.alloc(1024 * 1024)
        const pieces = [Buffer.concat([pixel, piece.subarray(pixel.length)])]
        for (let mb = 1; mb < 300; mb += 1) pieces.push(piece)
        const { counted, from } = download("image/png", pieces)
        const { stream } = yield* resultStream(from, "images")
        const error = yield* Effect.flip(Stream.runDrain(stream))
        assert.match(error.message, /larger than 268435456/u)
        assert.strictEqual(counted.pieces, 257)
      })
    )
  )
})
