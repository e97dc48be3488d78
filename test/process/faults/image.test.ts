import { execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync
} from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { ownClock } from "../../support/ownClock.ts"
import {
  assertConsole,
  freePort,
  projectFolder,
  run,
  untilReady
} from "../../support/spawnService.ts"
import { inMemory, temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

const dockerfile = readFileSync(join(projectFolder, "Dockerfile"), "utf8").replaceAll("\\\n", " ")

/** The arguments of all instructions with this name, in order. */
const instructions = (name: string): ReadonlyArray<string> =>
  dockerfile
    .split("\n")
    .filter((line) => line.trimStart().startsWith(`${name} `))
    .map((line) => line.trim().slice(name.length + 1))

const lock: { readonly packages: Record<string, { readonly version?: string }> } = JSON.parse(
  readFileSync(join(projectFolder, "package-lock.json"), "utf8")
)

/** Where this version of a package is installed, because there may be two versions. */
const placeOf = (name: string, version: string): string => {
  const places = Object.keys(lock.packages).filter((place) =>
    place.endsWith(`node_modules/${name}`)
  )
  return places.find((place) => lock.packages[place]?.version === version) ?? places[0] ?? name
}

/** Copies what the first stage copies. */
const copySources = (folder: string) => {
  const copied = instructions("COPY").filter((line) => !line.startsWith("--from"))
  for (const source of copied.flatMap((line) => line.split(" ").slice(0, -1))) {
    cpSync(join(projectFolder, source), join(folder, source), { recursive: true })
  }
}

const linkPackage = (place: string, folder: string) => {
  mkdirSync(dirname(join(folder, place)), { recursive: true })
  symlinkSync(join(projectFolder, place), join(folder, place))
}

/** Installs what `npm ci --omit=dev` would. The packages themselves are already here; `npm run test:image` downloads them. */
const installProduction = async (folder: string, install: string) => {
  const npm = run(
    "sh",
    ["-c", `${install} --dry-run --offline`],
    { NO_UPDATE_NOTIFIER: "1" },
    folder
  )
  assert.strictEqual(await npm.ended, 0, npm.output())
  const added = [...npm.output().matchAll(/^add (\S+) (\S+)$/gmu)]
  assert.isNotEmpty(added)
  for (const [, name = "", version = ""] of added) {
    const place = placeOf(name, version)
    const { version: installed } = JSON.parse(
      readFileSync(join(projectFolder, place, "package.json"), "utf8")
    )
    assert.strictEqual(installed, version, name)
    // A package inside another package is linked with it
    if (place !== `node_modules/${name}`) continue
    linkPackage(place, folder)
  }
}

const [install = "", node = ""] = instructions("RUN")
  .find((line) => line.startsWith("npm ci"))!
  .split(" && ")

const last = (name: string): string => instructions(name).at(-1) ?? ""

describe("the image", () => {
  it("is built in stages, runs as a numeric non-root user, and listens on all addresses", () => {
    assert.isAbove(instructions("FROM").length, 1)
    assert.match(last("FROM"), /slim/)
    assert.match(last("USER"), /^[1-9]\d*:[1-9]\d*$/)
    assert.match(last("ENV"), /HOST=0\.0\.0\.0/)
    assert.strictEqual(last("STOPSIGNAL"), "SIGTERM")
    assert.match(last("HEALTHCHECK"), /readyz/)
  })

  it("builds the console and the service from the packages that its stage installs, and no others", async () => {
    const folder = temporaryFolder("image-bundles")
    copySources(folder)
    await installProduction(folder, install)
    rmSync(join(folder, "src/http/console/dist"), { recursive: true, force: true })
    const [, list = ""] = /npm install --prefix \/bundles [^$]*\$\(node (-e ".*?")\)/u.exec(
      dockerfile
    )!
    const listed = execFileSync("sh", ["-c", `'${process.execPath}' ${list}`], { cwd: folder })
    for (const [, name = "", version] of `${listed}`.matchAll(/(\S+)@(\S+)/gu)) {
      assert.strictEqual(version, lock.packages[`node_modules/${name}`]?.version)
      linkPackage(`node_modules/${name}`, folder)
    }
    for (const [, build = ""] of dockerfile.matchAll(/\/node\/bin\/node (src\/cli\/\S+)/gu)) {
      execFileSync(process.execPath, [join(folder, build)])
    }
    assert.isTrue(existsSync(join(folder, "src/http/console/dist/index.html")))
    assert.match(
      readFileSync(join(folder, "build/main.mjs"), "utf8"),
      /^import ".\/\w+\/main.mjs"/u
    )
  })

  it("works in a clean folder: production dependencies, start, readyz, and SIGTERM ends it with 0", async () => {
    const folder = temporaryFolder("image")
    copySources(folder)
    await installProduction(folder, install)
    // Without the bundler, it writes a program that runs the source
    execFileSync(process.execPath, [join(folder, "src/cli/service/buildService.ts")])
    assert.deepStrictEqual(readdirSync(join(folder, "build")), ["main.mjs"])
    // The image's Node is the pinned version, which runs this test
    assert.match(
      node,
      /^npm install --prefix \/node .*node-linux-.*packages\['node_modules\/node'\]/
    )
    assert.strictEqual(process.version, `v${lock.packages["node_modules/node"]?.version}`)
    const inFolder = (path: string) => path.replace("/usr/local/bin/node", process.execPath)

    const port = await freePort()
    const [entry] = JSON.parse(last("ENTRYPOINT")) as [string]
    const words = JSON.parse(last("CMD")) as Array<string>
    const env = {
      ...Object.fromEntries(
        last("ENV")
          .trim()
          .split(/\s+/)
          .map((pair) => pair.replace("/app", folder).split("=") as [string, string])
      ),
      // Stopping a new store mostly consists of syncing each of its files: 0.8 of the measured 0.94 s
      DATA_DIR: join(temporaryFolder("image-data", inMemory), "data"),
      PORT: `${port}`,
      // A linked package finds only packages that are linked next to it
      NODE_OPTIONS: "--preserve-symlinks",
      // No load balancer needs time to notice
      SHUTDOWN_DELAY: "0 seconds"
    }
    const service = run(inFolder(entry), words, env, folder)
    try {
      await untilReady(service, port)
      await assertConsole(port)
      const probe = JSON.parse(last("HEALTHCHECK").replace(/^.*?CMD /, "")) as [
        string,
        ...Array<string>
      ]
      const health = run(inFolder(probe[0]), probe.slice(1), env, folder)
      assert.strictEqual(await health.ended, 0, health.output())
      const now = ownClock(service.pid)
      const asked = now()
      service.kill("SIGTERM")
      // Read while the process runs, because its clock ends with it
      await until(() => now() > 0 && service.hasEnded())
      assert.strictEqual(await service.ended, 0, service.output())
      assert.isBelow(now() - asked, 5000)
    } finally {
      service.kill("SIGKILL")
    }
  }, 180_000)
})
