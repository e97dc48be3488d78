import { Effect, FileSystem, Path } from "effect"

/** Matches `[name]-[hash]`, where the name changes with the content. */
const hashed = /-[0-9A-Z]{8}\.\w+$/u

const types: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2"
}

/** The encodings that the build writes for each file, the smallest first. */
const encodings = [
  { name: "br", extension: ".br" },
  { name: "gzip", extension: ".gz" }
] as const

export interface ConsoleFile {
  readonly bytes: Uint8Array
  readonly contentType: string
  /** Undefined if the file is not compressed. */
  readonly encoding: string | undefined
}

/** The built console. `npm start` and `npm run console` build the folder. ADR 0205 */
export const makeConsoleFiles = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* path.fromFileUrl(new URL("dist", import.meta.url))
  const names = new Set(
    yield* Effect.catch(fs.readDirectory(folder), (cause) =>
      Effect.die(
        new Error("The console is not built: npm run console, or deno task console", { cause })
      )
    )
  )
  const index = yield* fs.readFileString(path.join(folder, "index.html"))
  /** A file whose name contains a hash; `undefined` if it does not exist. */
  const read = (name: string, accepted: string): Effect.Effect<ConsoleFile> | undefined => {
    const contentType = types[name.slice(name.lastIndexOf(".") + 1)]
    if (!hashed.test(name) || !names.has(name) || contentType === undefined) return undefined
    const smaller = encodings.find(
      ({ extension, name: encoding }) => accepts(accepted, encoding) && names.has(name + extension)
    )
    return Effect.map(
      Effect.orDie(fs.readFile(path.join(folder, name + (smaller?.extension ?? "")))),
      (bytes) => ({ bytes, contentType, encoding: smaller?.name })
    )
  }
  return { index, read }
}).pipe(Effect.orDie)

/** Whether an `Accept-Encoding` header accepts an encoding; a weight of 0 rejects it. RFC 9110, 12.5.3 */
export const accepts = (header: string, encoding: string): boolean =>
  header.split(",").some((part) => {
    const [name = "", ...parameters] = part.trim().toLowerCase().split(";")
    return name.trim() === encoding && !parameters.some((it) => /^\s*q=0(?:\.0*)?\s*$/u.test(it))
  })
