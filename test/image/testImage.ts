/**
 * Builds the image and runs it, without a container engine: `npm run test:image`. docs/developing.md
 *
 * `debootstrap` makes the base images and `buildah` builds the `Dockerfile` in a chroot, as root, in a temporary folder.
 * Then the image's own command runs as its own user on a read-only root: one task, a picture, SIGTERM.
 */
import assert from "node:assert"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort, projectFolder } from "../support/spawnService.ts"
import { until } from "../support/until.ts"

const tools = ["buildah", "debootstrap", "unshare", "chroot", "npm"]
const missing = tools.filter((it) => spawnSync("which", [it]).status !== 0)
if (missing.length > 0 || process.getuid?.() !== 0) {
  const lack = missing.length > 0 ? `${missing.join(", ")} missing (Debian has them)` : "not root"
  console.log(`Skipped: the image is not built, because ${lack}`)
  process.exit(0)
}

const folder = mkdtempSync(join(tmpdir(), "gateway-image-"))
const storage = ["--root", join(folder, "storage"), "--runroot", join(folder, "run")]
const buildah = (...words: ReadonlyArray<string>): string =>
  execFileSync("buildah", [...storage, "--storage-driver", "vfs", ...words], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, BUILDAH_ISOLATION: "chroot" },
    maxBuffer: 64 * 1024 * 1024
  }).trim()

/** Runs steps in a container of an image and saves the result as another image. */
const image = (from: string, name: string, build: (container: string) => void) => {
  const container = buildah("from", "--pull-never", from)
  build(container)
  buildah("commit", "--quiet", container, name)
  buildah("rm", container)
}

/** The registry of image names that contain none. */
const library = "docker.io/library"

/** The bases that the `Dockerfile` names: Debian, and Debian with Node and npm. */
const makeBases = () => {
  const debian = join(folder, "debian")
  const install = ["--variant=minbase", "bookworm", debian]
  execFileSync("debootstrap", install, { stdio: ["ignore", "ignore", "inherit"] })
  image("scratch", `${library}/debian:bookworm-slim`, (container) =>
    buildah("add", container, debian, "/")
  )
  rmSync(debian, { recursive: true })
  // `npm root -g` prints the folder of the node that runs it, which here has no npm
  const program = execFileSync("which", ["npm"], { encoding: "utf8" }).trim()
  const npm = join(realpathSync(program), "../..")
  image(`${library}/debian:bookworm-slim`, `${library}/node:24-bookworm-slim`, (container) => {
    buildah("copy", container, process.execPath, "/usr/local/bin/node")
    buildah("copy", container, npm, "/usr/local/lib/node_modules/npm")
    const link = [
      "ln",
      "-s",
      "/usr/local/lib/node_modules/npm/bin/npm-cli.js",
      "/usr/local/bin/npm"
    ]
    buildah("run", container, "--", ...link)
    // The registry of this machine, for the stages that install packages; the last stage has another base
    const settings = ["/root/.npmrc", "/usr/etc/npmrc"].find((it) => existsSync(it))
    if (settings !== undefined) buildah("copy", container, settings, "/root/.npmrc")
    const certificates = process.env["NODE_EXTRA_CA_CERTS"]
    if (certificates === undefined) return
    buildah("copy", container, certificates, "/usr/local/share/ca.pem")
    buildah("config", "--env", "NODE_EXTRA_CA_CERTS=/usr/local/share/ca.pem", container)
  })
}

const build = () => {
  const options = ["--pull-never", "--layers=false", "--format", "docker", "--tag", "gateway"]
  buildah("bud", "--quiet", ...options, projectFolder)
}

interface ImageConfig {
  readonly User: string
  readonly Env: ReadonlyArray<string>
  readonly Entrypoint: ReadonlyArray<string>
  readonly Cmd: ReadonlyArray<string>
  readonly WorkingDir: string
  readonly Volumes: Readonly<Record<string, object>>
}

const run = async () => {
  const { OCIv1 } = JSON.parse(buildah("inspect", "--type", "image", "localhost/gateway")) as {
    OCIv1: { config: ImageConfig }
  }
  const config = OCIv1.config
  const root = buildah("mount", buildah("from", "--pull-never", "localhost/gateway"))
  const size = execFileSync("du", ["-sm", root], { encoding: "utf8" }).split("\t")[0]
  console.log(`The image has ${size} MB and runs as ${config.User}`)
  assert.match(config.User, /^[1-9]\d*:[1-9]\d*$/u)
  assert.ok(!existsSync(join(root, "root/.npmrc")), "the settings of the registry are in the image")
  const [uid = "", gid = ""] = config.User.split(":")
  const volumes = Object.keys(config.Volumes).map((inside) => {
    const outside = join(folder, "volumes", inside)
    mkdirSync(outside, { recursive: true })
    chownSync(outside, Number(uid), Number(gid))
    return `mount --bind ${outside} ${root}${inside}`
  })
  const port = await freePort()
  const quoted = [...config.Entrypoint, ...config.Cmd].map((word) => `'${word}'`).join(" ")
  const script = [
    "set -e",
    `mount --bind ${root} ${root}`,
    `mount -o remount,ro,bind ${root}`,
    ...volumes,
    `mount -t proc proc ${root}/proc`,
    `mount --rbind /dev ${root}/dev`,
    `mount -t tmpfs tmpfs ${root}/tmp`,
    `exec chroot --userspec=${config.User} ${root} /usr/bin/env -C ${config.WorkingDir} ${quoted}`
  ].join("\n")
  const given = Object.fromEntries(
    config.Env.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)])
  )
  const child = spawn("unshare", ["--mount", "sh", "-c", script], {
    env: {
      ...given,
      PORT: `${port}`,
      SHUTDOWN_DELAY: "0 seconds",
      SIMULATOR_DELAY: "100 millis",
      NODE_DEBUG_NATIVE: "COMPILE_CACHE"
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()))
  }
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve))
  try {
    await serve(`http://127.0.0.1:${port}`, () => output)
    const mounts = readFileSync(`/proc/${child.pid}/mountinfo`, "utf8").split("\n")
    assert.ok(
      mounts.some((it) => / \/ ro[, ]/u.test(it)),
      "the root is writable"
    )
    assert.match(readFileSync(`/proc/${child.pid}/status`, "utf8"), new RegExp(`Uid:\\t${uid}\\t`))
    child.kill("SIGTERM")
    assert.strictEqual(await ended, 0, output)
    console.log("SIGTERM ended it with status 0")
    const bundles = [
      ...output.matchAll(
        /reading cache from \S+ for ESM \S+\/build\/(\S+\.mjs)\.\.\..*\.\.\. (\w*)/gu
      )
    ]
    assert.ok(bundles.length > 0, "the compile cache of the image was not used")
    for (const [, file, found] of bundles) assert.strictEqual(found, "success", file)
    console.log(`${bundles.length} files of the bundle came from the compile cache`)
  } catch (cause) {
    throw new Error(`the image failed:\n${output.replace(/^\[compile cache\].*\n/gmu, "")}`, {
      cause
    })
  } finally {
    child.kill("SIGKILL")
    await ended
  }
}

/** Runs one task of the first user up to its picture. */
const serve = async (origin: string, output: () => string) => {
  await until(async () => {
    const response = await fetch(`${origin}/readyz`).catch(() => undefined)
    return response?.status === 200
  })
  const key = await until(() => /sk-[0-9A-Za-z]{46}/u.exec(output())?.[0])
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  const path = `${origin}/vendors/alibaba/v1/text-to-image-max/generation`
  const response = await fetch(path, {
    method: "POST",
    headers: { ...headers, prefer: "wait=60" },
    body: JSON.stringify({ prompt: "A lighthouse at dawn" })
  })
  const task = (await response.json()) as { images?: ReadonlyArray<string> }
  assert.strictEqual(response.status, 200, JSON.stringify(task))
  const { pathname, search } = new URL(task.images?.[0] ?? "")
  const picture = Buffer.from(await (await fetch(origin + pathname + search)).arrayBuffer())
  assert.strictEqual(picture.subarray(1, 4).toString(), "PNG")
  console.log(`One task, and a picture of ${picture.length} bytes`)
}

try {
  const began = performance.now()
  makeBases()
  build()
  console.log(`Built in ${((performance.now() - began) / 1000).toFixed(0)} seconds`)
  await run()
} finally {
  spawnSync("buildah", [...storage, "--storage-driver", "vfs", "rm", "--all"])
  rmSync(folder, { recursive: true, force: true })
}
