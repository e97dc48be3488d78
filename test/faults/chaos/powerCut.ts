import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"

/**
 * Loaded before a program: keeps, for each file, what was overwritten since the last fsync. SIGUSR2 restores it and
 * kills the process, like a power cut that no write without an fsync survives.
 */
interface Undo {
  readonly position: number
  /** The previous content; shorter at the end of the file. */
  readonly before: Buffer
  /** The size of the file before the write. */
  readonly size: number
}

const folder = process.env["POWER_CUT_FOLDER"] ?? ""
const real = { ...fs }
const open = new Map<number, string>()
const undos = new Map<string, Array<Undo>>()

const note = (fd: number, position: number, length: number) => {
  const path = open.get(fd)
  if (path === undefined) return
  const { size } = real.fstatSync(fd)
  const before = Buffer.alloc(Math.max(0, Math.min(length, size - position)))
  const reader = real.openSync(path, "r")
  if (before.length > 0) real.readSync(reader, before, 0, before.length, position)
  real.closeSync(reader)
  const list = undos.get(path) ?? []
  undos.set(path, list)
  list.push({ position, before, size })
}

fs.openSync = ((path: fs.PathLike, flags: fs.OpenMode, mode?: fs.Mode) => {
  const fd = real.openSync(path, flags, mode)
  if (String(path).startsWith(folder)) open.set(fd, String(path))
  return fd
}) as typeof fs.openSync

fs.closeSync = (fd) => {
  open.delete(fd)
  real.closeSync(fd)
}

fs.writeSync = ((
  fd: number,
  buffer: Uint8Array,
  offset = 0,
  length?: number,
  at?: number | null
) => {
  const count = length ?? buffer.byteLength - (offset ?? 0)
  if (typeof at === "number") note(fd, at, count)
  return real.writeSync(fd, buffer, offset, count, at)
}) as typeof fs.writeSync

fs.ftruncateSync = (fd, length = 0) => {
  const size = length ?? 0
  note(fd, size, Math.max(0, real.fstatSync(fd).size - size))
  real.ftruncateSync(fd, size)
}

const synced = (fd: number) => {
  const path = open.get(fd)
  if (path !== undefined) undos.delete(path)
}
fs.fsyncSync = (fd) => {
  real.fsyncSync(fd)
  synced(fd)
}
fs.fdatasyncSync = (fd) => {
  real.fdatasyncSync(fd)
  synced(fd)
}
fs.renameSync = (from, to) => {
  real.renameSync(from, to)
  const list = undos.get(String(from))
  undos.delete(String(from))
  undos.delete(String(to))
  if (list !== undefined) undos.set(String(to), list)
}
fs.unlinkSync = (path) => {
  real.unlinkSync(path)
  undos.delete(String(path))
}
syncBuiltinESMExports()

process.on("SIGUSR2", () => {
  let lost = 0
  for (const [path, list] of undos) {
    if (!real.existsSync(path)) continue
    const fd = real.openSync(path, "r+")
    for (const { before, position, size } of list.toReversed()) {
      if (before.length > 0) real.writeSync(fd, before, 0, before.length, position)
      real.ftruncateSync(fd, size)
      lost += 1
    }
    real.closeSync(fd)
  }
  real.writeSync(2, `${lost} writes to ${undos.size} files were not synced\n`)
  process.kill(process.pid, "SIGKILL")
})
