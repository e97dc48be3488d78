import { assert } from "@effect/vitest"
import formats from "ajv-formats"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect } from "effect"
import type { Command } from "effect/cli"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { gateway as program } from "../../../src/cli/Program.ts"
import { listenerBounds } from "../../../src/http/server/listener/Listener.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { runCommand } from "../../support/commandLine.ts"
import { adminToken } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { call, json, Running, runningGateway } from "../../support/running.ts"
import type { Task } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/cli.md#json: what `--json` prints of the API is what the service's own OpenAPI document says. */

const folder = Effect.sync(() => temporaryFolder("json"))

/** Commands that print their own documents. For `listen` see gatewayCommands.test.ts */
const own = new Set([
  "serve",
  "migrate",
  "doctor",
  "backup",
  "restore",
  "rotate-master-key",
  "store mark-restored",
  "catalog check",
  "models check",
  "models import",
  "vendors test",
  "keys revoke",
  "listen"
])

const leavesOf = (command: Command.Command.Any): ReadonlyArray<string> =>
  command.subcommands.flatMap(({ commands }) =>
    commands.flatMap((it) => {
      const below = leavesOf(it)
      return below.length === 0 ? [it.name] : below.map((name) => `${it.name} ${name}`)
    })
  )

const documentId = "http://gateway.test/openapi.json"

/** Validates against the document that the running service sends. */
const apiSchemas = Effect.gen(function* () {
  const { url } = yield* Running
  const document = yield* Effect.promise(
    async () => (await fetch(`${url}/openapi.json`)).json() as Promise<object>
  )
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv)
  ajv.addSchema({ ...document, $id: documentId })
  const holds = (place: string, value: unknown, command: string) => {
    const fits = ajv.compile({ $ref: `${documentId}#${place}` })
    assert.isTrue(
      fits(value),
      `${command}: ${ajv.errorsText(fits.errors)}\n${JSON.stringify(value)}`
    )
  }
  const escaped = (path: string) => path.replaceAll("~", "~0").replaceAll("/", "~1")
  return {
    /** A value against a named schema. */
    schema: (name: string) => (value: unknown, command: string) =>
      holds(`/components/schemas/${name}`, value, command),
    /** A value against the response of an operation. */
    response: (route: string, status: number) => {
      const [method = "", path = ""] = route.split(" ")
      const place = `/paths/${escaped(path).replaceAll(/[{}]/gu, encodeURIComponent)}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`
      return (value: unknown, command: string) => holds(place, value, command)
    }
  }
})

type Validate = (value: unknown, command: string) => void

liveLayer(runningGateway({}, listenerBounds, () => Effect.succeed(mockOutcome(200))))((it) => {
  it.effect("the documents of all commands match the schemas", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const out = yield* folder
      const { response, schema } = yield* apiSchemas
      const env = { GATEWAY_URL: url, GATEWAY_API_KEY: key, ADMIN_TOKEN: adminToken }
      const gateway = (...args: ReadonlyArray<string>) => runCommand([...args, "--json"], env)
      const validated = new Set<string>()
      const leaves = leavesOf(program)
      /** Runs a command and validates the part of its output that comes from the API. */
      const check = (
        args: ReadonlyArray<string>,
        validate: Validate,
        // oxlint-disable-next-line typescript/no-explicit-any -- JSON of any command
        part: (document: any) => unknown = (document) => document
      ) =>
        Effect.map(gateway(...args), (ran) => {
          const name = leaves.find((leaf) => `${args.join(" ")} `.startsWith(`${leaf} `))
          assert.isDefined(name, args.join(" "))
          assert.strictEqual(ran.code, 0, `${args.join(" ")}: ${ran.error}`)
          const document = JSON.parse(ran.out)
          validate(part(document), args.join(" "))
          validated.add(name)
          return document
        })

      const users = "/manage/v1/users"
      const change = response(`PATCH ${users}/{id}`, 200)
      const ada = yield* check(
        ["users", "create", "ada@example.com"],
        response(`POST ${users}`, 201)
      )
      yield* check(["users", "list"], response(`GET ${users}`, 200))
      yield* check(["users", "limits", ada.id, "--rate-limit", "10"], change)
      yield* check(["users", "disable", ada.id], change)
      yield* check(["users", "enable", ada.id], change)
      yield* check(["users", "show", ada.id], schema("User"), (it) => it.user)
      yield* check(["users", "show", ada.id], schema("Wallet"), (it) => it.wallet)
      yield* check(
        ["top-up", ada.id, "12.50"],
        response(`POST ${users}/{id}/top-ups`, 201),
        (it) => it.wallet
      )

      const keys = "/manage/v1/api-keys"
      const made = yield* check(["keys", "create", "--name", "a"], response(`POST ${keys}`, 201))
      yield* check(
        ["keys", "create", "--name", "b", "--user", ada.id],
        response(`POST ${users}/{id}/api-keys`, 201)
      )
      yield* check(["keys", "list"], response(`GET ${keys}`, 200))
      yield* check(["keys", "list", "--user", ada.id], response(`GET ${keys}`, 200))
      yield* check(["keys", "rotate", made.id], response(`POST ${keys}/{id}/rotate`, 200))

      const models = response("GET /manage/v1/models", 200)
      yield* check(["models", "list"], models)
      yield* check(["models", "show", "text-to-image-max"], models, (it) => ({
        ...it,
        next_cursor: null
      }))

      const hooks = "/manage/v1/webhook-endpoints"
      const hook = yield* check(
        ["endpoints", "create", "https://example.com/hook"],
        response(`POST ${hooks}`, 201)
      )
      yield* check(["endpoints", "list"], response(`GET ${hooks}`, 200))
      yield* check(["endpoints", "rotate", hook.id], response(`POST ${hooks}/{id}/rotate`, 200))
      const sent = yield* check(
        ["endpoints", "test", hook.id],
        response(`POST ${hooks}/{id}/test`, 202)
      )
      const redelivered = response("POST /manage/v1/webhook-deliveries/{id}/redeliver", 202)
      for (const id of [sent.delivery_id, sent.event_id]) {
        yield* check(["redeliver", id], redelivered, (it) => it.data[0])
      }

      const result = schema("TaskResult")
      const prompt = ["A lighthouse", "--out", out]
      const run = yield* check(["run", "text-to-image-max", ...prompt], result, (it) => it.task)
      const { id } = run.task.task_info
      yield* check(["tasks", "wait", id], result, (it) => it.task)
      yield* check(["tasks", "list"], response("GET /manage/v1/tasks", 200))
      yield* check(["tasks", "list", "--user", ada.id], response("GET /manage/v1/tasks", 200))
      yield* check(["tasks", "get", id], response("GET /manage/v1/tasks/{id}", 200))
      yield* check(["wallet"], response("GET /manage/v1/wallet", 200))
      const failed = yield* gateway("run", "text-to-image-max", "[[sim:fail]]")
      assert.strictEqual(failed.code, 1)
      result(JSON.parse(failed.out).error.problem, "run of a task that fails")
      const hanging = yield* call(
        "/vendors/alibaba/v1/text-to-image-max/generation",
        json({ prompt: "[[sim:hang]]" })
      )
      const { task_info } = yield* Effect.promise(() => hanging.json() as Promise<Task>)
      yield* check(["tasks", "cancel", task_info.id], result)

      const bill = join(out, "bill.csv")
      writeFileSync(bill, "job,model,date,amount\nx,m,2026-11-20,0.05\n")
      yield* check(
        ["reconcile", "--vendor", "fal", "--file", bill, "--id", "job"],
        response("POST /manage/v1/reconciliations", 200)
      )
      yield* check(
        ["rebuild-usage", "--from", "2026-11-01", "--to", "2026-11-30"],
        response("POST /manage/v1/usage/rebuild", 200)
      )

      for (const args of [
        ["tasks", "get", "01a20678-2e2e-7311-9155-06f4bb3f7f57"],
        ["keys", "create", "--name", ""],
        ["users", "create", "ada@example.com"],
        ["tasks", "cancel", id]
      ]) {
        const refused = yield* gateway(...args)
        assert.strictEqual(refused.code, 1, args.join(" "))
        const { error } = JSON.parse(refused.out)
        schema("Problem")(error.problem, args.join(" "))
        assert.strictEqual(error.exit_code, 1)
      }
      assert.sameMembers([...validated, ...own], [...leaves])
      assert.throws(() => schema("Problem")({}, "nothing"))
    }).pipe(Effect.scoped)
  )
})
