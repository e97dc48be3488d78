import {
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { basename, join } from "node:path"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"
import { errorCode } from "../../domain/ErrorCode.ts"
import { hashOf, root, runBuild } from "../builds.ts"

/** The folder from which the console is served. */
export const distFolder = join(root, "src/http/console/dist")

export interface BuiltConsole {
  /** All built files, by name. */
  readonly files: ReadonlyMap<string, Uint8Array>
  /**
   * The files that each page loads before it is shown (scripts with their imports, styles, the font), by the page's
   * source file.
   */
  readonly pages: ReadonlyMap<string, ReadonlyArray<string>>
}

/** Builds the console. The build is deterministic. ADR 0205 */
export const buildConsole = async (): Promise<BuiltConsole> => {
  const { build } = await import("esbuild")
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { console: "src/console/main.tsx", style: "src/console/styles/index.css" },
    outdir: distFolder,
    entryNames: "[name]-[hash]",
    chunkNames: "chunk-[hash]",
    assetNames: "[name]-[hash]",
    loader: { ".woff2": "file" },
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
  const style = outputOf("src/console/styles/index.css")
  const importsOf = (output: string, seen = new Set<string>()): ReadonlySet<string> => {
    if (seen.has(output)) return seen
    seen.add(output)
    for (const { kind, path } of metafile.outputs[output]?.imports ?? []) {
      if (kind === "import-statement") importsOf(path, seen)
    }
    return seen
  }
  const font = outputs.map(([name]) => name).find((name) => name.endsWith(fontType)) ?? ""
  const files = new Map<string, Uint8Array>()
  for (const { contents, path } of outputFiles) addWithSmaller(files, basename(path), contents)
  const html = readFileSync(join(root, "src/console/index.html"), "utf8")
    .replace("{script}", basename(script))
    .replace("{style}", basename(style))
    .replace("{font}", basename(font))
  files.set("index.html", new TextEncoder().encode(html))
  const pages = new Map<string, ReadonlyArray<string>>()
  for (const [name, { entryPoint }] of outputs) {
    if (!/^src\/console\/pages\/.+Page\.tsx$/u.test(entryPoint ?? "")) continue
    const loaded = [...importsOf(name, new Set(importsOf(script))), style, font]
    const before = ["index.html", ...loaded.map((it) => basename(it))]
    pages.set(entryPoint ?? "", before)
    // Parts that a page loads on demand count as separate pages
    for (const { kind, path } of metafile.outputs[name]?.imports ?? []) {
      const part = metafile.outputs[path]?.entryPoint
      if (kind !== "dynamic-import" || part === undefined) continue
      const added = [...importsOf(path)].map((it) => basename(it))
      pages.set(part, [...new Set([...before, ...added])])
    }
  }
  return { files, pages }
}

const fontType = ".woff2"

const addWithSmaller = (files: Map<string, Uint8Array>, name: string, contents: Uint8Array) => {
  files.set(name, contents)
  // A font file is already compressed
  if (name.endsWith(fontType)) return
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  files.set(`${name}.br`, brotliCompressSync(contents, { params: quality }))
  files.set(`${name}.gz`, gzipSync(contents, { level: constants.Z_BEST_COMPRESSION }))
}

/** Contains the hash of the sources from which a folder was built. No served file has this name. */
const stampName = "inputs.sha256"

const bundled = ["esbuild", "preact", "@preact/signals", "lucide", "@fontsource-variable/geist"]

/** The development dependencies that the build takes, as `name@version`. The image installs only these. */
export const bundledPackages = (): ReadonlyArray<string> => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  return bundled.map((name) => `${name}@${devDependencies[name]}`)
}

const hashOfInputs = (): string => {
  const sources = globSync("src/console/**/*.{ts,tsx,css,html,json}", { cwd: root }).sort()
  const others = ["src/client/schema.ts", "src/cli/console/buildConsole.ts"]
  return hashOf([...sources, ...others], bundledPackages())
}

const stampOf = (folder: string): string | undefined => {
  const path = join(folder, stampName)
  return existsSync(path) ? readFileSync(path, "utf8") : undefined
}

/**
 * Builds the console, unless the folder was already built from the same sources. Concurrent builds do not interfere,
 * because each writes to a separate folder and then renames it. `false`: it was already built. ADR 0205
 */
export const ensureConsole = async (folder = distFolder): Promise<boolean> => {
  const inputs = hashOfInputs()
  if (stampOf(folder) === inputs) return false
  const { files } = await buildConsole()
  const made = mkdtempSync(`${folder}-`)
  for (const [name, contents] of files) writeFileSync(join(made, name), contents)
  writeFileSync(join(made, stampName), inputs)
  const replaced = `${made}-replaced`
  if (stampOf(folder) !== inputs) {
    rename(folder, replaced)
    rename(made, folder)
  }
  for (const left of [made, replaced]) rmSync(left, { recursive: true, force: true })
  return true
}

/** Does nothing if another process was faster, and the source is gone or the target exists. */
const rename = (from: string, to: string): void => {
  try {
    renameSync(from, to)
  } catch (cause) {
    const code = errorCode(cause)
    if (code !== "ENOENT" && code !== "ENOTEMPTY" && code !== "EEXIST") throw cause
  }
}

/** Runs for `npm run console`, and before `npm start`. */
if (import.meta.main) {
  await runBuild("console", ensureConsole, () =>
    process.stderr.write(
      "The console is not built: the build needs the development dependencies (npm install). The API works without it\n"
    )
  )
}
