import { build } from "esbuild"
import * as fc from "fast-check"
import { execFile } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "vitest"
import { mediaFields } from "../../../src/catalog/media/MediaFields.ts"
import { clientTypes } from "../../../src/cli/client/clientTypes.ts"
import { dataOf } from "../../../src/client/EventStream.ts"
import { fileFrom } from "../../../src/client/index.ts"
import { encodeBody } from "../../../src/client/Media.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const run = promisify(execFile)
const root = fileURLToPath(new URL("../../../", import.meta.url))
const read = (path: string) => readFileSync(join(root, path), "utf8")

/** The limit for `generation-gateway/client`, minified and gzipped. docs/client.md#size */
const bytesMax = 8000

describe("the types of the client", () => {
  const types = clientTypes(JSON.parse(read("schema/openapi.json")))

  it("are generated from the OpenAPI document", () => {
    assert.strictEqual(read("src/client/schema.ts"), types, "run npm run schema")
  })

  it("accept bytes exactly where a body accepts inline media", () => {
    const inputs = types.split("export interface ModelInputs")[1]!
    for (const [label, fields] of Object.entries(mediaFields)) {
      const name = new RegExp(`"${label}": (\\w+)`, "u").exec(inputs)![1]
      const body = types.split(`export interface ${name} {`)[1]!.split("\n}")[0]!
      const found = [...body.matchAll(/^ {2}readonly (\w+)\??: .*\bMedia\b/gmu)].map(([, it]) => it)
      const inline = Object.entries(fields).filter(([, { kind }]) => kind !== "video")
      assert.sameMembers(
        found,
        inline.map(([field]) => field),
        label
      )
    }
  })
})

const bundled = async (entry: string, external: Array<string> = []) => {
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    metafile: true,
    write: false,
    logLevel: "silent",
    external
  })
  return { inputs: Object.keys(metafile.inputs), contents: outputFiles[0]!.contents }
}

describe("the bundle of the client", () => {
  it("has at most 8 kB for browsers, from files of its own folder only", async () => {
    const { contents, inputs } = await bundled("src/client/index.ts")
    const size = gzipSync(contents, { level: 9 }).length
    assert.isAtMost(size, bytesMax)
    assert.isAtLeast(size, 3000, "the client is in the bundle")
    for (const input of inputs) assert.match(input, /^src\/client\//u)
  })

  it("imports only effect in its version for Effect", async () => {
    const { inputs } = await bundled("src/client/effect.ts", ["effect", "effect/*"])
    for (const input of inputs) assert.match(input, /^src\/client\//u)
  })
})

/** Runs a task with a file whose create is lost once, and returns what was sent. */
const program = `
import { fileFrom, GatewayClient } from "./client.mjs"
const sent = []
const info = { id: "t", created_at: "", updated_at: "" }
const answers = [
  () => Promise.reject(new TypeError("fetch failed")),
  async () => Response.json({ task_info: info }, { status: 202 }),
  async () =>
    new Response(
      "data: " + JSON.stringify({ task_info: { ...info, status: "completed" }, images: ["u"] }) + "\\n\\n",
      { headers: { "content-type": "text/event-stream" } }
    )
]
const fetch = (_, { body, headers }) => {
  sent.push([body, new Headers(headers).get("idempotency-key")])
  return answers[sent.length - 1]()
}
const options = { baseUrl: "http://gateway.test", apiKey: "sk-test", random: () => 0, fetch }
const image = await fileFrom(new URL("./client.mjs", import.meta.url).pathname)
const { images } = await new GatewayClient(options).tasks.run("image-edit", { prompt: "A", images: [image] })
const [[first, key], [second, again]] = sent
console.log(JSON.stringify([images, sent.length, first === second, key === again, image.size]))
`

describe("the built client", () => {
  it("runs on Node and on Deno, with files", async () => {
    const folder = temporaryFolder("client")
    const { contents } = await bundled("src/client/index.ts")
    writeFileSync(join(folder, "client.mjs"), contents)
    const main = join(folder, "main.mjs")
    writeFileSync(main, program)
    const deno = join(root, "node_modules/.bin/deno")
    const runs = [run(process.execPath, [main]), run(deno, ["run", `--allow-read=${folder}`, main])]
    const expected = JSON.stringify([["u"], 3, true, true, contents.length])
    for (const { stdout } of await Promise.all(runs)) assert.strictEqual(stdout.trim(), expected)
  })
})

describe("a stream of events", () => {
  const eventsIn = async (pieces: ReadonlyArray<Uint8Array>) => {
    const left = [...pieces]
    const found: Array<string> = []
    const next = async () => ({ done: left.length === 0, value: left.shift() })
    for await (const event of dataOf(next)) found.push(event)
    return found
  }

  it("has the same events however its bytes are split and its lines end", async () => {
    for (const end of ["\n", "\r\n", "\r"]) {
      const lines = [
        ": hello",
        "",
        "event: x",
        "data: 雪",
        "",
        "",
        "data:b",
        "data: c",
        "",
        "data: half"
      ]
      const bytes = new TextEncoder().encode(lines.join(end))
      assert.deepStrictEqual(await eventsIn([bytes]), ["雪", "b\nc"])
      assert.deepStrictEqual(await eventsIn([...bytes].map((it) => Uint8Array.of(it))), [
        "雪",
        "b\nc"
      ])
    }
  })
})

describe("media in a body", () => {
  it("are sent as Base64, whatever their type", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 70_000, size: "max" }), async (bytes) => {
        const text = Buffer.from(bytes).toString("base64")
        const copy = bytes.slice()
        // A view of a larger buffer
        const view = new Uint8Array([0, ...bytes, 0]).subarray(1, bytes.length + 1)
        const stream = new Blob([copy]).stream()
        for (const medium of [
          copy,
          copy.buffer,
          view,
          new Blob([copy]),
          new File([copy], "a"),
          stream
        ]) {
          assert.strictEqual(
            await encodeBody({ images: [medium] }),
            JSON.stringify({ images: [text] })
          )
        }
      }),
      { numRuns: 10 }
    )
  })

  it("are the bytes of a file; other values are unchanged", async () => {
    const folder = temporaryFolder("client")
    const path = join(folder, "a.png")
    writeFileSync(path, "abc")
    assert.strictEqual(await encodeBody({ image: await fileFrom(path) }), `{"image":"YWJj"}`)
    const body = { a: null, b: [1, { c: true }], d: "https://example.com/a.png", e: undefined }
    assert.strictEqual(await encodeBody(body), JSON.stringify(body))
  })
})
