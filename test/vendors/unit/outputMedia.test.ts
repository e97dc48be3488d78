import { assert, describe, it } from "vitest"
import { filesAt, filesIn, usualFields } from "../../../src/vendors/OutputMedia.ts"

const file = (name: string, content_type: string | null = "image/png") => ({
  url: `https://v3.fal.media/${name}`,
  content_type
})
const urls = (output: unknown, fields: ReadonlyArray<string>) =>
  filesAt(output, fields, false).map((item) => (item._tag === "Url" ? item.url : item._tag))

/** docs/reference/vendors.md#fal-queue */
describe("the files of an output", () => {
  it("are read from the usual field of each kind of result, as a file or a list", () => {
    const output = {
      prompt: "https://attacker.example/x.png",
      images: [file("1.png"), file("2.png")],
      video: file("v.mp4", "video/mp4"),
      audio_file: file("a.wav", null)
    }
    assert.deepEqual(urls(output, usualFields.images), [
      "https://v3.fal.media/1.png",
      "https://v3.fal.media/2.png"
    ])
    assert.deepEqual(urls(output, usualFields.videos), ["https://v3.fal.media/v.mp4"])
    assert.deepEqual(urls(output, usualFields.audios), ["https://v3.fal.media/a.wav"])
    assert.deepEqual(urls({ image: file("one.png") }, usualFields.images), [
      "https://v3.fal.media/one.png"
    ])
  })

  it("are read only from the field that the catalog names, at any depth", () => {
    const output = { images: [file("no.png")], result: { sticker: file("yes.png") } }
    assert.deepEqual(urls(output, ["result.sticker"]), ["https://v3.fal.media/yes.png"])
    assert.deepEqual(urls(output, ["toString", "result.other"]), [])
  })

  it("have the declared type, else that of the name", () => {
    const types = filesIn([file("a.png", "image/webp"), "https://a.test/b.mp4?x=1", "b"], true).map(
      (item) => (item._tag === "Url" ? [item.mime, item.isShortLived] : [])
    )
    assert.deepEqual(types, [
      ["image/webp", true],
      ["video/mp4", true]
    ])
  })

  it("are not texts or URLs of other schemes", () => {
    assert.deepEqual(filesIn(["see https://a.test/1.png", "data:image/png;base64,AA", 1], true), [])
    assert.deepEqual(filesIn([{ url: "file:///etc/passwd" }, { url: 1 }, null], true), [])
  })
})
