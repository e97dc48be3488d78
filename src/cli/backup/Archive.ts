import { Effect, Schema, Stream } from "effect"
import { Tar } from "effect/encoding"
import { createHash, randomBytes } from "node:crypto"
import { createReadStream, createWriteStream } from "node:fs"
import { link, lstat, mkdir, readdir, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { createGunzip, createGzip } from "node:zlib"
import { syncPath } from "../../db/NewStore.ts"
import { errorCode } from "../../domain/ErrorCode.ts"
import { CommandFault, failed } from "../terminal/Fault.ts"

/** A file in the archive, with the properties that it must have. */
const ArchivedFile = Schema.Struct({
  path: Schema.String,
  size: Schema.Int,
  sha256: Schema.String
})

/** The last entry, so a truncated archive lacks it. */
export const Manifest = Schema.Struct({
  format: Schema.Literal(1),
  created_at: Schema.String,
  version: Schema.String,
  files: Schema.Array(ArchivedFile)
})
export type Manifest = typeof Manifest.Type

const manifestName = "manifest.json"
const decodeManifest = Schema.decodeUnknownEffect(Schema.fromJsonString(Manifest))

/** A folder to archive, and the files to exclude. */
export interface Source {
  readonly name: string
  readonly folder: string
  readonly isLeftOut: (path: string) => boolean
}

/** Runs a promise whose signal aborts on interruption. */
export const attempt = <A>(
  what: string,
  run: (signal: AbortSignal) => Promise<A>,
  remedy?: string
) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      cause instanceof CommandFault
        ? cause
        : failed(`${what}: ${cause instanceof Error ? cause.message : "failed"}`, remedy)
  })

/** Paths below a folder, each folder before its contents. Excluded folders are not read. */
const pathsIn = async (
  { folder, isLeftOut }: Omit<Source, "name">,
  below = ""
): Promise<ReadonlyArray<string>> => {
  const found = await readdir(join(folder, below), { withFileTypes: true })
  const paths = found.map(async (entry) => {
    const path = join(below, entry.name)
    if (isLeftOut(path)) return []
    const inside = entry.isDirectory() ? await pathsIn({ folder, isLeftOut }, path) : []
    return [[path], inside].flat()
  })
  return (await Promise.all(paths)).flat()
}

/** Files and folders of a source. */
const entriesIn = async (source: Source) => {
  const { folder, name } = source
  return Promise.all(
    (await pathsIn(source)).map(async (path) => {
      const stat = await lstat(join(folder, path))
      if (!stat.isFile() && !stat.isDirectory()) {
        throw failed(
          `${join(folder, path)} is neither a file nor a folder`,
          "Take it out of DATA_DIR"
        )
      }
      return { path: `${name}/${path}`, file: join(folder, path), stat }
    })
  )
}

/** Adds one file to the archive. Its hash is known once it has been read. */
const fileEntry = (
  entry: Awaited<ReturnType<typeof entriesIn>>[number],
  note: (sha256: string) => void
) => {
  const hash = createHash("sha256")
  // Opened when it is read: entries are made ahead, and an open file without a reader would throw its error
  const bytes = Stream.suspend(() =>
    Stream.fromAsyncIterable<Uint8Array, CommandFault>(createReadStream(entry.file), (cause) =>
      failed(`${entry.file} cannot be read (${errorCode(cause) ?? "unknown fault"})`)
    )
  ).pipe(
    Stream.tap((chunk) => Effect.sync(() => hash.update(chunk))),
    Stream.onEnd(Effect.sync(() => note(hash.digest("hex"))))
  )
  const { mode, mtime, size } = entry.stat
  return Tar.fileStream(entry.path, size, bytes, { mode: mode & 0o777, mtime })
}

/** Writes a `.tar.gz`, which gets its final name once it is complete and durable. Never overwrites a file. */
export const writeArchive = Effect.fnUntraced(function* (
  file: string,
  sources: ReadonlyArray<Source>,
  about: Omit<Manifest, "files">
) {
  const parts = yield* attempt("The store cannot be read", () =>
    Promise.all(sources.map(entriesIn))
  )
  const entries = parts.flat()
  const files: Array<Manifest["files"][number]> = []
  const archived = Stream.fromIterable(entries).pipe(
    Stream.map((entry) =>
      entry.stat.isDirectory()
        ? Tar.directory(entry.path, { mode: entry.stat.mode & 0o777 })
        : fileEntry(entry, (sha256) => {
            files.push({ path: entry.path, size: entry.stat.size, sha256 })
          })
    ),
    Stream.concat(
      Stream.suspend(() =>
        Stream.succeed(Tar.file(manifestName, JSON.stringify({ ...about, files }), { mode: 0o600 }))
      )
    ),
    Stream.pipeThroughChannelOrFail(Tar.encode())
  )
  const remedy = "Name a file that does not exist yet, on a disk with room for it"
  yield* Effect.acquireUseRelease(
    // A unique name, so that leftovers of a killed backup and concurrent backups do not interfere
    Effect.sync(() => `${file}.${randomBytes(4).toString("hex")}.part`),
    (part) =>
      attempt(
        file,
        async (signal) => {
          const bytes = Readable.from(Stream.toAsyncIterable(archived))
          const out = createWriteStream(part, { flags: "wx", mode: 0o600, flush: true })
          await pipeline(bytes, createGzip(), out, { signal })
          // Fails if the name is taken, even by a concurrent backup
          await link(part, file)
          await syncPath(dirname(file))
        },
        remedy
      ),
    (part) => Effect.promise(() => rm(part, { force: true }))
  )
  return files
})

const inside = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[^/\0][^\0]*$/u

/** Why the archive cannot be unpacked. */
const unreadable = (file: string, cause: unknown): CommandFault => {
  if (cause instanceof CommandFault) return cause
  const code = errorCode(cause) ?? ""
  if (code === "Z_BUF_ERROR" || (Tar.isTarError(cause) && cause.kind === "Truncated")) {
    return failed(
      `${file} is truncated: it ends before the end of the backup`,
      "Copy the whole file again, or use another backup"
    )
  }
  const isDamaged = code.startsWith("Z_") || Tar.isTarError(cause)
  const message = cause instanceof Error ? cause.message : "cannot be read"
  return failed(`${file}${isDamaged ? " is damaged" : ""}: ${message}`, "Use another backup")
}

/** Unpacks an archive into an empty folder and checks every file against the manifest. */
export const readArchive = Effect.fnUntraced(function* (file: string, folder: string) {
  const found = new Map<string, { readonly size: number; readonly sha256: string }>()
  let manifest: string | undefined
  const unpack = (entry: Tar.Entry<Tar.TarError | CommandFault>) =>
    Effect.gen(function* () {
      const { path, size, type } = entry.header
      const mode = entry.header.mode & 0o777
      const name = path.replace(/\/$/u, "")
      if (!inside.test(name)) return yield* failed(`${file} has an entry ${JSON.stringify(path)}`)
      const target = join(folder, name)
      if (type === "Directory") {
        return yield* attempt(target, () => mkdir(target, { recursive: true, mode }))
      }
      if (type !== "File") return yield* failed(`${file} has an entry of another kind: ${path}`)
      const hash = createHash("sha256")
      const bytes = entry.body.pipe(Stream.tap((chunk) => Effect.sync(() => hash.update(chunk))))
      if (name === manifestName) {
        manifest = yield* Stream.mkString(Stream.decodeText(bytes))
        return undefined
      }
      const written = Stream.mapError(bytes, (error) => unreadable(file, error))
      yield* attempt(target, async () => {
        await mkdir(dirname(target), { recursive: true })
        const out = createWriteStream(target, { flags: "wx", mode })
        await pipeline(Readable.from(Stream.toAsyncIterable(written)), out)
      })
      found.set(name, { size, sha256: hash.digest("hex") })
      return undefined
    })
  const source = createReadStream(file)
  const gunzip = createGunzip()
  // Forwards the error, because both streams are read through one iterator. Any failure means that the archive is
  // faulty
  source.once("error", (error) => gunzip.destroy(error))
  // An entry that is being written fails without the reason
  let reason: CommandFault | undefined
  yield* Stream.fromAsyncIterable<Uint8Array, CommandFault>(source.pipe(gunzip), (cause) => {
    reason = unreadable(file, cause)
    return reason
  }).pipe(
    Stream.pipeThroughChannelOrFail(Tar.decode()),
    Stream.runForEach(unpack),
    Effect.mapError((error) => unreadable(file, error)),
    // The reason may also arrive as a defect, if the stream breaks off behind the last entry
    Effect.catchCause((cause) =>
      reason === undefined ? Effect.failCause(cause) : Effect.fail(reason)
    )
  )
  return yield* verified(file, manifest, found)
})

const verified = Effect.fnUntraced(function* (
  file: string,
  text: string | undefined,
  found: ReadonlyMap<string, { readonly size: number; readonly sha256: string }>
) {
  if (text === undefined) {
    return yield* failed(
      `${file} is truncated: its last entry, the manifest, is missing`,
      "Copy the whole file again, or use another backup"
    )
  }
  const manifest = yield* Effect.mapError(decodeManifest(text), () =>
    failed(`${file} is a backup of another program`, "Restore it with the version that made it")
  )
  const wrong = manifest.files.find(({ path, sha256, size }) => {
    const it = found.get(path)
    return it === undefined || it.size !== size || it.sha256 !== sha256
  })
  if (wrong !== undefined || found.size !== manifest.files.length) {
    return yield* failed(
      `${file} is damaged: ${wrong === undefined ? "it has files that its manifest lacks" : `${wrong.path} differs from its checksum`}`,
      "Use another backup"
    )
  }
  return manifest
})
