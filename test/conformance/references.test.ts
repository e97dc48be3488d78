import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, extname, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), "utf8")

const textTypes = new Set([".ts", ".sql", ".md", ".json", ".py", ".go", ".yml", ".yaml"])

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => !name.split("/").includes("node_modules"))
    .map((name) => `${folder}/${name}`)
    .filter((path) => textTypes.has(extname(path)) && statSync(join(root, path)).isFile())

const files = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...["src", "schema", "test", "bench", "deploy", "docs", "examples"].flatMap(filesIn)
]
const documents = files.filter((path) => path.endsWith(".md"))

const withoutCode = (text: string): string => text.replaceAll(/^```[\s\S]*?^```/gmu, "")

/** As GitHub creates them: lower case, no punctuation, hyphens for spaces, a number for duplicates. */
const slugOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/gu, "$1")
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/gu, "-")

const anchorsOf = (text: string): ReadonlySet<string> => {
  const counts = new Map<string, number>()
  const anchors = new Set<string>()
  for (const [, heading = ""] of withoutCode(text).matchAll(/^#{1,6} +(.+)$/gmu)) {
    const slug = slugOf(heading)
    const before = counts.get(slug) ?? 0
    counts.set(slug, before + 1)
    anchors.add(before === 0 ? slug : `${slug}-${before}`)
  }
  for (const [, id = ""] of text.matchAll(/<a id="([\w-]+)">/gu)) anchors.add(id)
  return anchors
}

const anchors = new Map(documents.map((path) => [path, anchorsOf(read(path))]))
const decisions = new Set(
  readdirSync(join(root, "docs/adr")).map((name) => /^\d{4}/u.exec(name)?.[0] ?? "")
)

/** The fault of a reference to a file in the repository; `undefined` if it resolves. */
const faultOf = (path: string, anchor: string | undefined): string | undefined => {
  if (!existsSync(join(root, path))) return `there is no ${path}`
  const known = anchors.get(path)
  return anchor === undefined || known === undefined || known.has(anchor)
    ? undefined
    : `${path} has no heading #${anchor}`
}

interface Reference {
  readonly path: string
  readonly anchor: string | undefined
}

/** `docs/reference/webhooks.md#retries`, as written in comments and texts. Links are checked below. */
const citedIn = (text: string): ReadonlyArray<Reference> =>
  [
    ...text
      .replaceAll(/\]\([^)\s]+\)/gu, "]")
      .matchAll(
        /(?<![\w./-])((?:docs|bench|deploy|examples)\/[\w./-]+\.md|(?:ARCHITECTURE|CHANGELOG|CONTRIBUTING|README|SECURITY)\.md)(?:#([\w-]+))?/gu
      )
  ].map(([, path = "", anchor]) => ({ path, anchor }))

/** `[text](../file.md#heading)`, relative to the document's folder. */
const linkedIn = (document: string, text: string): ReadonlyArray<Reference> =>
  [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/gu)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/iu.test(target))
    .map((target) => {
      const [path = "", anchor] = target.split("#")
      return { path: path === "" ? document : normalize(join(dirname(document), path)), anchor }
    })

/** `ADR 0072`, and the further numbers of `ADR 0072 and 0073`. */
const decisionsIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\bADRs? (\d{4}(?:(?:,| and| to) \d{4})*)/gu)].flatMap(
    ([, numbers = ""]) => numbers.match(/\d{4}/gu) ?? []
  )

const faultsIn = (
  paths: ReadonlyArray<string>,
  find: (path: string, text: string) => ReadonlyArray<Reference>
): ReadonlyArray<string> =>
  paths.flatMap((path) =>
    find(path, read(path)).flatMap((reference) => {
      const fault = faultOf(reference.path, reference.anchor)
      return fault === undefined ? [] : [`${path}: ${fault}`]
    })
  )

describe("references", () => {
  it("to a document in comments and texts resolve to its file and heading", () => {
    assert.deepEqual(
      faultsIn(files, (_, text) => citedIn(text)),
      []
    )
  })

  it("in relative links resolve to a file and a heading in it", () => {
    assert.deepEqual(faultsIn(documents, linkedIn), [])
  })

  it("to decisions name one that exists", () => {
    const missing = files.flatMap((path) =>
      decisionsIn(read(path))
        .filter((number) => !decisions.has(number))
        .map((number) => `${path}: ADR ${number}`)
    )
    assert.deepEqual(missing, [])
  })

  it("from each requirement, which has a unique id, name the tests that prove it", () => {
    const path = "docs/reference/requirements.md"
    const rules = read(path)
      .split("\n")
      .filter((line) => line.includes("**R-"))
    const ids = rules.map((line) => {
      const [, anchor, name] =
        /^- <a id="([a-z0-9-]+)"><\/a>\*\*(R-[A-Z]+-\d+)\*\* /u.exec(line) ?? []
      assert.strictEqual(anchor, name?.toLowerCase(), line)
      const tests = linkedIn(path, line).filter((it) => /^test\/.*\.test\.ts$/u.test(it.path))
      assert.isNotEmpty(tests, line)
      return anchor
    })
    assert.isAbove(ids.length, 200)
    assert.strictEqual(new Set(ids).size, ids.length)
  })
})
