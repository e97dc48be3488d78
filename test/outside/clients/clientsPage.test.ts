import { execFile } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, assert, describe, it } from "vitest"
import { worlds } from "../support/worlds.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const outside = join(root, "test/outside")
// Inside this project, where the packages are found
const folder = mkdtempSync(join(outside, "node_modules", ".clients-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const world = worlds().find(({ name }) => name === "the sandbox")!
const env = { ...process.env, GATEWAY_URL: world.url, GATEWAY_API_KEY: world.key }
const python = join(outside, "languages/python/node_modules/.python/bin/python")

const fence = /^```(sh|ts|py) (\S+)\n([\s\S]*?)^```$/gmu

const samplesOf = (page: string) =>
  [...readFileSync(join(root, page), "utf8").matchAll(fence)].map(
    ([, language = "", name = "", code = ""]) => ({ language, name, code })
  )

/** This package, imported as by its users. */
const sources = {
  '"generation-gateway/ai-sdk"': join(root, "src/ai-sdk/index.ts"),
  '"generation-gateway-client"': join(root, "src/client/index.ts")
}

/** The output of a sample, run by the program for its language. */
const print = async (language: string, name: string, code: string): Promise<string> => {
  const text = Object.entries(sources).reduce(
    (all, [from, to]) => all.replaceAll(from, JSON.stringify(to)),
    code
  )
  const file = join(folder, `${name}.${language === "ts" ? "mjs" : language}`)
  writeFileSync(file, text)
  const program = { sh: "sh", ts: process.execPath, py: python }[language] ?? ""
  const { stdout } = await promisify(execFile)(program, [file], { env, timeout: 50_000 })
  return stdout
}

/** What is printed in addition to the sandbox's text. */
const expected: Readonly<Record<string, RegExp>> = {
  gateway: /\/artifacts\//u,
  mcp: /create_task/u
}

const samples = samplesOf("docs/clients.md")

/** docs/clients.md */
describe("the samples of docs/clients.md", () => {
  it("are ten of at most three lines each", () => {
    assert.lengthOf(samples, 10)
    for (const { code, name } of samples) {
      assert.isAtMost(code.trim().split("\n").length, 3, name)
    }
  })

  for (const { code, language, name } of samples) {
    if (language === "py" && !existsSync(python)) {
      console.log(
        `Not run: ${name}, because npm run test:languages did not install Python's clients`
      )
      continue
    }
    it(`run unchanged: ${name}`, async () => {
      const printed = await print(language, name, code)
      const pattern = expected[name]
      if (pattern === undefined) assert.include(printed, world.text)
      else assert.match(printed, pattern)
    })
  }
})

/** docs/ai-sdk.md */
describe("the sample of docs/ai-sdk.md", () => {
  for (const { code, language, name } of samplesOf("docs/ai-sdk.md").filter(
    ({ language }) => language === "ts"
  )) {
    it("makes text, an image and a video", async () => {
      assert.strictEqual((await print(language, name, code)).trim(), `${world.text} 1 1`)
    })
  }
})
