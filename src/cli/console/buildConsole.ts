import { build } from "esbuild"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { apiTypes } from "./apiTypes.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** Where the built console is committed, and served from. */
export const distFolder = join(root, "src/http/console/dist")

export const typesFile = join(root, "src/console/api/schema.ts")

export const makeTypes = (): string =>
  apiTypes(JSON.parse(readFileSync(join(root, "schema/openapi.json"), "utf8")))

export interface BuiltConsole {
  /** All files of the folder, by name. */
  readonly files: ReadonlyMap<string, Uint8Array>
  /** Names of what the page loads before anything is shown: its scripts with their imports, its styles. */
  readonly firstPaint: ReadonlyArray<string>
}

/** The same files for the same sources. ADR 0205 */
export const buildConsole = async (): Promise<BuiltConsole> => {
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { console: "src/console/main.tsx", style: "src/console/styles/index.css" },
    outdir: distFolder,
    entryNames: "[name]-[hash]",
    chunkNames: "chunk-[hash]",
    bundle: true,
    splitting: true,
    minify: true,
    metafile: true,
    write: false,
    format: "esm",
    target: ["es2024", "chrome125", "firefox128", "safari18"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
    tsconfig: join(root, "src/console/tsconfig.json")
  })
  const outputs = Object.entries(metafile.outputs)
  const outputOf = (entry: string): string => {
    const found = outputs.find(([, { entryPoint }]) => entryPoint === entry)
    if (found === undefined) throw new Error(`${entry} was not built`)
    return found[0]
  }
  const script = outputOf("src/console/main.tsx")
  const home = outputOf("src/console/pages/home/HomePage.tsx")
  const style = outputOf("src/console/styles/index.css")
  const importsOf = (output: string, seen = new Set<string>()): ReadonlySet<string> => {
    if (seen.has(output)) return seen
    seen.add(output)
    for (const { kind, path } of metafile.outputs[output]?.imports ?? []) {
      if (kind === "import-statement") importsOf(path, seen)
    }
    return seen
  }
  const first = [...importsOf(home, new Set(importsOf(script))), style].map((it) => basename(it))
  const files = new Map<string, Uint8Array>()
  for (const { contents, path } of outputFiles) addWithSmaller(files, basename(path), contents)
  const html = readFileSync(join(root, "src/console/index.html"), "utf8")
    .replace("{script}", basename(script))
    .replace("{style}", basename(style))
  files.set("index.html", new TextEncoder().encode(html))
  return { files, firstPaint: ["index.html", ...first] }
}

const addWithSmaller = (files: Map<string, Uint8Array>, name: string, contents: Uint8Array) => {
  files.set(name, contents)
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  files.set(`${name}.br`, brotliCompressSync(contents, { params: quality }))
  files.set(`${name}.gz`, gzipSync(contents, { level: constants.Z_BEST_COMPRESSION }))
}

/** `npm run console`: the types of the API, then the built console. */
const main = async (): Promise<void> => {
  mkdirSync(dirname(typesFile), { recursive: true })
  writeFileSync(typesFile, makeTypes())
  const { files } = await buildConsole()
  rmSync(distFolder, { recursive: true, force: true })
  mkdirSync(distFolder, { recursive: true })
  for (const [name, contents] of files) writeFileSync(join(distFolder, name), contents)
}

if (import.meta.main) await main()
