import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { execFile } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { generateApi } from "swagger-typescript-api"
import { Label } from "../../src/catalog/bodies/Bodies.ts"
import { decodeBody } from "../../src/catalog/bodies/Decode.ts"
import { examples } from "../../src/catalog/bodies/Examples.ts"
import { builtInEntries } from "../../src/catalog/BuiltInModels.ts"
import { withBuiltIn } from "../../src/catalog/UpstreamCatalog.ts"
import { schemaFiles } from "../../src/http/openapi/SchemaFiles.ts"
import { liveLayer } from "../support/liveLayer.ts"
import { call, Running, runningGateway } from "../support/running.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const run = promisify(execFile)
const require = createRequire(import.meta.url)

interface Operation {
  readonly operationId: string
  readonly security?: ReadonlyArray<unknown>
  readonly requestBody?: { content: { "application/json": { schema: { $ref: string } } } }
  readonly responses: Record<string, { $ref?: string }>
}
interface Document {
  readonly openapi: string
  readonly paths: Record<string, Record<string, Operation>>
  readonly webhooks: object
  readonly components: { readonly schemas: Record<string, { properties: Record<string, Field> }> }
}
interface Field {
  readonly default?: unknown
  readonly maxLength?: number
}

const document = JSON.parse(readFileSync(join(root, "schema/openapi.json"), "utf8")) as Document

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => ["get", "post", "patch", "delete"].includes(method))
    .map(([method, operation]) => ({ path, method, operation }))
)

describe("the errors of an operation", () => {
  const statusesOf = (id: string) =>
    Object.entries(
      operations.find(({ operation }) => operation.operationId === id)?.operation.responses ?? {}
    ).map(([status, { $ref }]) => $ref?.split("/").at(-1) ?? status)

  it.each(["getPasskeyCreation", "getPasskeySignIn", "createPasskey", "changePassword"])(
    "of %s include 404, because a request may have no session",
    (id) => assert.include(statusesOf(id), "Problem404")
  )

  it.each(["createChatCompletion", "createTranscription", "post_anthropic_v1_messages"])(
    "of %s may come from the vendor",
    (id) => assert.includeMembers(statusesOf(id), ["200", "Relayed400", "Relayed429"])
  )

  it("of the gateway are problems", () => {
    assert.includeMembers(statusesOf("createImage"), ["Problem400", "Problem402"])
  })
})

describe("schema/", () => {
  it.effect("openapi.json and events/*.json are the output of `npm run schema`", () =>
    Effect.map(schemaFiles, (files) => {
      for (const [name, text] of files) {
        assert.strictEqual(readFileSync(join(root, "schema", name), "utf8"), text, name)
      }
    })
  )
  it.live(
    "the public linter finds no error, and every example matches its schema",
    () =>
      Effect.gen(function* () {
        const redocly = join(dirname(require.resolve("@redocly/cli/package.json")), "bin/cli.js")
        const { stderr } = yield* Effect.promise(() =>
          run(process.execPath, [redocly, "lint", "schema/openapi.json"], {
            cwd: root,
            env: {
              ...process.env,
              REDOCLY_TELEMETRY: "off",
              REDOCLY_SUPPRESS_UPDATE_NOTICE: "true"
            }
          })
        )
        assert.match(stderr, /is valid/)
      }),
    180_000
  )
})

describe("openapi.json", () => {
  it("has each model path with the body of its model", () => {
    for (const { action, label, model, vendor } of builtInEntries) {
      const path = `/vendors/${vendor}/v1/${model}/${action}`
      const body = document.paths[path]?.["post"]?.requestBody?.content["application/json"].schema
      const component = body?.$ref.split("/").at(-1) ?? ""
      assert.strictEqual(component.toLowerCase(), label.replaceAll("-", ""))
      assert.isDefined(document.components.schemas[component]?.properties["prompt"])
      const item = document.paths[`${path}/{task_id}`]
      assert.containsAllKeys(item, ["get", "delete"])
    }
  })
  it("has exactly the vendor routes that the catalog opens", () => {
    const routes = withBuiltIn().routes.map(
      ({ method, path, vendor }) => `${method.toLowerCase()} /vendors/${vendor}${path}`
    )
    const models = new Set(
      builtInEntries.map(({ action, model, vendor }) => `/vendors/${vendor}/v1/${model}/${action}`)
    )
    const documented = operations
      .filter(({ path }) => path.startsWith("/vendors/"))
      .filter(({ path }) => !models.has(path.replace("/{task_id}", "")))
      .map(({ method, path }) => `${method} ${path}`)
    assert.deepStrictEqual(documented.sort(), routes.sort())
    for (const [path, vendor] of [
      ["/v1/chat/completions", "openai"],
      ["/v1/responses", "openai"],
      ["/v1/responses/input_tokens", "openai"],
      ["/v1/embeddings", "openai"],
      ["/v1/models", "openai"],
      ["/v1/models/{model}", "openai"],
      ["/v1/messages", "anthropic"],
      ["/v1/messages/count_tokens", "anthropic"]
    ]) {
      const alias = Object.values(document.paths[path!]!)[0]!
      const source = Object.values(document.paths[`/vendors/${vendor}${path}`]!)[0]!
      assert.deepStrictEqual(alias.requestBody, source.requestBody)
      assert.deepStrictEqual(alias.responses, source.responses)
    }
  })
  it("has the defaults and limits of the bodies", () => {
    const { properties = {} } = document.components.schemas["TextToVideoSpark"] ?? {}
    assert.strictEqual(properties["size"]?.default, "1280*720")
    assert.strictEqual(properties["audio"]?.default, true)
    assert.strictEqual(properties["prompt"]?.maxLength, 2000)
  })
  it("states for each operation whether it needs a key, and that failures are problems", () => {
    assert.isAbove(operations.length, 40)
    for (const { method, operation, path } of operations) {
      const name = `${method} ${path}`
      const isOpen = !/^\/(?:(?:vendors|v1|manage)\/|mcp$)/u.test(path)
      const isManaged = /^\/manage\/v1\/(?!task-batches)/u.test(path)
      const schemes = isManaged ? ["bearer", "session"] : ["bearer"]
      assert.deepStrictEqual(
        operation.security?.flatMap((scheme) => Object.keys(scheme as object)),
        isOpen ||
          ["signIn", "getService", "beginOidc", "finishOidc"].includes(operation.operationId)
          ? []
          : schemes,
        name
      )
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) >= 400) {
          assert.match(
            response.$ref ?? "",
            new RegExp(`^#/components/responses/(?:Problem|Relayed)${status}$`, "u"),
            name
          )
        }
      }
      assert.containsAllKeys(operation.responses, isOpen ? ["500"] : ["401", "403", "500"], name)
    }
    const ids = operations.map(({ operation }) => operation.operationId)
    assert.strictEqual(new Set(ids).size, ids.length)
  })
  it("names the events as webhooks", () => {
    assert.hasAllKeys(document.webhooks, [
      "task.created",
      "task.succeeded",
      "task.failed",
      "task_batch.completed",
      "balance.low",
      "webhook.failing",
      "key.expiring"
    ])
  })
  it.effect("has examples for all models that the decoders accept", () =>
    Effect.forEach(Label.literals, (label) => decodeBody(label, examples[label]))
  )
})

/** What a developer writes with the generated client. */
const usage = `
import { Api } from "./client.ts"
export const create = async (baseUrl: string, key: string): Promise<string> => {
  const api = new Api({ baseUrl, baseApiParams: { headers: { authorization: \`Bearer \${key}\` } } })
  const created = await api.vendors.createAlibabaTextToImageMaxGeneration({}, { prompt: "A lighthouse" })
  // Without dry_run
  if (!("task_info" in created.data)) throw new Error("no task")
  const id: string = created.data.task_info.id
  const task = await api.vendors.getAlibabaTextToImageMaxGeneration({ taskId: id })
  const images: string[] | undefined = task.data.images
  return \`\${created.status} \${task.data.task_info.status} \${task.data.task_info.id === id} \${images?.length}\`
}
`

liveLayer(runningGateway())("a client generated from it by a public generator", (it) => {
  it.effect(
    "compiles and creates a task",
    () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const { key, url } = yield* Running
        const folder = yield* files.makeTempDirectoryScoped()
        yield* Effect.promise(() =>
          generateApi({
            input: join(root, "schema/openapi.json"),
            output: folder,
            fileName: "client.ts",
            silent: true,
            httpClientType: "fetch",
            extractRequestParams: true
          })
        )
        const client = join(folder, "client.ts")
        writeFileSync(client, readFileSync(client, "utf8").replace("// @ts-nocheck", ""))
        writeFileSync(join(folder, "usage.ts"), usage)
        yield* Effect.promise(() =>
          run(
            process.execPath,
            [
              join(root, "node_modules/typescript/bin/tsc"),
              "--noEmit",
              "--strict",
              "--target",
              "es2023",
              "--module",
              "nodenext",
              "--lib",
              "es2023,dom,dom.iterable",
              "--allowImportingTsExtensions",
              "--types",
              "",
              "--skipLibCheck",
              join(folder, "usage.ts")
            ],
            { cwd: folder }
          ).catch((error: { stdout: string }) => {
            throw new Error(error.stdout)
          })
        )
        const { create } = (yield* Effect.promise(
          () => import(/* @vite-ignore */ pathToFileURL(join(folder, "usage.ts")).href)
        )) as { create: (url: string, key: string) => Promise<string> }
        assert.match(
          yield* Effect.promise(() => create(url, key)),
          /^202 (pending|processing|completed) true (undefined|1)$/
        )
      }).pipe(Effect.provide(NodeServices.layer)),
    180_000
  )
  it.effect("is made from the document that the running service returns", () =>
    Effect.gen(function* () {
      const answer = yield* call("/openapi.json")
      assert.deepStrictEqual(yield* Effect.promise(() => answer.json()), document)
      const docs = yield* call("/docs")
      assert.strictEqual(docs.status, 200)
      const page = yield* Effect.promise(() => docs.text())
      for (const path of ["/vendors/openai/v1/responses", "/vendors/anthropic/v1/messages"])
        assert.include(page, path)
    })
  )
})
