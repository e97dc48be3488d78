import { assert, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** Documents written outside this repository, which readers of the code do not have. */
const foreign: ReadonlyArray<RegExp> = [
  /\bcontracts?\s+(?:\d|section|names|wants|is silent|leaves)/iu,
  /\bcontract\.md\b/iu,
  /\bContract[:.] /u,
  /\bspec(?:\.md|, |: |,$)/iu,
  /\b(?:Spec|SPEC)\b/u,
  /\bthe spec\b(?!ific)/iu,
  /(?<!docs\/reference\/)\bvendors\.md\b/u,
  /\barchitecture(?:\.md|, | rules? \d|\))/u,
  /\bArchitecture, /u
]

const withoutLinks = (line: string): string => line.replaceAll(/\[[^\]]*\]\([^)]*\)/gu, "")

const textTypes = new Set([".ts", ".sql", ".md", ".json", ".py", ".go"])
const itself = "test/conformance/foreignCitations.test.ts"

const files = ["src", "schema", "test", "bench", "deploy", "docs", "examples"]
  .filter((folder) => existsSync(join(root, folder)))
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
      (name) => `${folder}/${name}`
    )
  )
  .filter((path) => !path.split("/").includes("node_modules") && textTypes.has(extname(path)))
  .filter((path) => path !== itself && statSync(join(root, path)).isFile())
  .concat(readdirSync(root).filter((name) => name.endsWith(".md")))

it("no file cites a document from outside this repository", () => {
  const found = files.flatMap((path) =>
    readFileSync(join(root, path), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        foreign.some((pattern) => pattern.test(withoutLinks(line)))
          ? [`${path}:${index + 1}: ${line.trim().slice(0, 120)}`]
          : []
      )
  )
  assert.deepEqual(found, [])
})
