import { execFile } from "node:child_process"
import { mkdir, rm, statfs, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"

const exec = promisify(execFile)

/** A small in-memory file system that can be full or read-only. */
export class Disk {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  /** `undefined` if mounting is not permitted. */
  static async mount(folder: string): Promise<Disk | undefined> {
    await mkdir(folder, { recursive: true })
    try {
      await exec("mount", ["-t", "tmpfs", "-o", "size=64m", "tmpfs", folder])
      return new Disk(folder)
    } catch {
      return undefined
    }
  }

  /** Leaves less than one block. */
  async fill(): Promise<void> {
    const { bavail, bsize } = await statfs(this.folder)
    const most = Buffer.alloc(bavail * bsize)
    await writeFile(join(this.folder, "filler"), most).catch(() => {})
  }

  async free(): Promise<void> {
    await rm(join(this.folder, "filler"), { force: true })
  }

  async setReadOnly(isReadOnly: boolean): Promise<void> {
    // Busy while a file is open for writing
    for (let tries = 0; tries < 50; tries += 1) {
      const done = await exec("mount", [
        "-o",
        `remount,${isReadOnly ? "ro" : "rw"}`,
        this.folder
      ]).then(
        () => true,
        () => false
      )
      if (done) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async unmount(): Promise<void> {
    await exec("umount", ["-l", this.folder]).catch(() => {})
  }
}
