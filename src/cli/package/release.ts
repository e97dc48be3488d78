import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { stdout } from "node:process"
import { smallPackages } from "./smallPackages.ts"

/**
 * `npm run release`: publishes this package and the small packages and tags the commit, if all conditions of a release
 * are met. `-- --dry-run` prints what is missing and what would be published. docs/developing.md#release
 */
const isDry = process.argv.includes("--dry-run")

const say = (line: string) => stdout.write(`${line}\n`)
const run = (program: string, ...words: ReadonlyArray<string>): string =>
  execFileSync(program, words, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] })
const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

const manifest: {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly repository?: unknown
} = JSON.parse(read("package.json"))
const { name, version } = manifest
const tag = `v${version}`

/** The conditions of a release, each with its remedy. */
const conditions: ReadonlyArray<readonly [isMet: () => boolean, what: string, remedy: string]> = [
  [
    () => run("git", "status", "--porcelain") === "",
    "the tree is clean",
    "commit or discard the changes"
  ],
  [
    () => run("git", "tag", "--list", tag) === "",
    `${tag} has not been released yet`,
    "raise the version of package.json and of src/domain/Version.ts"
  ],
  [
    () =>
      new RegExp(`^## ${version.replaceAll(".", "\\.")} \\(\\d{4}-\\d\\d-\\d\\d\\)$`, "mu").test(
        read("CHANGELOG.md")
      ),
    "CHANGELOG.md has the version with its date",
    `put the changes under the heading "## ${version} (YYYY-MM-DD)"`
  ],
  [
    () => JSON.parse(read("schema/openapi.json") || "{}").info?.version === version,
    "the OpenAPI document has the version",
    "npm run schema"
  ],
  [
    () => read(".ci/passed").trim() === run("git", "rev-parse", "HEAD^{tree}").trim(),
    "all tests have passed on this tree",
    ".ci/run"
  ],
  [
    () => ![undefined, "UNLICENSED"].includes(manifest.license),
    "a license is chosen",
    'set "license" in package.json'
  ],
  [
    () => manifest.repository !== undefined && manifest.repository !== "not set",
    "the repository is named",
    'set "repository" in package.json'
  ]
]

const missing = conditions.filter(([isMet]) => !isMet())
for (const condition of conditions) {
  const [, what, remedy] = condition
  say(missing.includes(condition) ? `missing  ${what}: ${remedy}` : `ok       ${what}`)
}

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly entryCount: number
}
const packed = run("npm", "pack", "--dry-run", "--json", ...(isDry ? ["--ignore-scripts"] : []))
const [file]: ReadonlyArray<Packed> = Object.values(
  JSON.parse(packed.slice(packed.search(/^[[{]/mu)))
)
if (file === undefined) throw new Error("npm pack created no file")
const sizes = `${file.size} bytes, ${file.unpackedSize} unpacked, ${file.entryCount} files`
say(`${isDry ? "would publish" : "publishes"} ${name}@${version}: ${file.filename}, ${sizes}`)
for (const { name } of smallPackages)
  say(`${isDry ? "would publish" : "publishes"} ${name}@${version}`)
say(`${isDry ? "would tag" : "tags"} ${tag}`)
if (missing.length > 0) process.exitCode = 1
else if (!isDry) {
  run("npm", "run", "--silent", "check")
  run("npm", "publish")
  for (const { folder } of smallPackages) run("npm", "publish", `./${folder}`)
  run("git", "tag", tag)
}
