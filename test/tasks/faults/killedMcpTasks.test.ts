import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { killAfter, killRounds } from "../../support/killRounds.ts"
import { taskRequest } from "../../support/mcpTasks.ts"
import { issueToken, startTokenIssuer, TokenIssuer } from "../../support/tokenIssuer.ts"
import { pause, until } from "../../support/until.ts"

/** Credits of a task of the model. */
const price = 7.5
const model = "alibaba/text-to-image-max"
const tooLong = 180_000 + killRounds * 60_000

/** docs/reference/mcp.md#tasks, docs/reference/mcp.md#oauth */
describe("kill -9 between a tool call with an access token and its result", () => {
  let issuer: Awaited<ReturnType<typeof startTokenIssuer>>
  let gateway: GatewayProcess
  let key: string
  let othersKey: string
  const tasks: Array<string> = []

  /** A new token of a person, who is found by address at first and by subject from then on. */
  const tokenOf = (name: string, claims: Record<string, unknown> = {}) =>
    Effect.runPromise(
      issueToken({
        claims: {
          aud: `${gateway.url}/mcp`,
          sub: name,
          email: `${name}@example.com`,
          email_verified: true,
          jti: crypto.randomUUID(),
          ...claims
        }
      }).pipe(Effect.provideService(TokenIssuer, issuer))
    )

  const makePerson = async (name: string) => {
    const user = await gateway.makeUser()
    await gateway.manage("PATCH", `/users/${user.id}`, { email: `${name}@example.com` })
    return user.key
  }

  const send = (token: string, method: string, params: Readonly<Record<string, unknown>>) => {
    const { body, headers } = taskRequest(method, params)
    return gateway.call("POST", "/mcp", body, { ...headers, authorization: `Bearer ${token}` })
  }
  const useTool = (token: string, name: string, args: object) =>
    send(token, "tools/call", { name, arguments: args })

  /** The task of a call, which is repeated until it gets one. */
  const callSurely = (token: string, prompt: string) =>
    until<string>(
      async () => {
        const args = { model, input: { prompt } }
        const answer = await useTool(token, "create_task", args).catch(() => undefined)
        return answer?.json?.result?.taskId
      },
      { what: "the task of a call", millis: 120_000 }
    )

  /** How the task ended, for this token. */
  const endOf = (token: string, taskId: string) =>
    until(
      async () => {
        const { json } = await send(token, "tasks/get", { taskId })
        return json.result.status !== "working" && json.result
      },
      { what: `the result of ${taskId}` }
    )

  /** Waits until the vendor has the job or its submit is in doubt, so that it is never repeated. */
  const submitOf = (id: string) =>
    until(
      async () => {
        const { json } = await gateway.useKey(key).call("GET", `/manage/v1/tasks/${id}`)
        if (json.attempts.at(-1)?.state === "submitted") return "submitted"
        return json.status === "failed" && "in doubt"
      },
      { what: `the submit of ${id}` }
    )

  beforeAll(async () => {
    issuer = await startTokenIssuer()
    gateway = await GatewayProcess.start({
      env: {
        OIDC_ISSUER: issuer.issuer,
        OIDC_CLIENT_ID: "gateway",
        SIMULATOR_DELAY: "5 seconds",
        EMBEDDED_DURABLE: "false"
      }
    })
    key = await makePerson("owner")
    othersKey = await makePerson("other")
    for (let round = 0; round < killRounds; round += 1) {
      const call = callSurely(await tokenOf("owner"), `A quay ${round}`)
      // While it is accepted or submitted; except for the last one, whose submit is never in doubt
      if (round < killRounds - 1) {
        await pause(killAfter(round, 500))
        await gateway.restart()
      }
      const id = await call
      tasks.push(id)
      if ((await submitOf(id)) === "in doubt") continue
      // A call that waits for the result when the process dies
      const waiting = useTool(await tokenOf("owner"), "get_task", {
        task_id: id,
        wait_seconds: 45
      }).then(
        ({ status }) => status,
        () => "broken"
      )
      await gateway.restart()
      assert.strictEqual(await waiting, "broken")
    }
  }, tooLong)
  afterAll(async () => {
    await gateway.close()
    issuer.stop()
  })

  it(
    "the same token, a newer one and a key of the same user get the result",
    async () => {
      for (const id of tasks) {
        const { result, status } = await endOf(await tokenOf("owner"), id)
        assert.strictEqual(status, "completed")
        const shown = result.structuredContent
        assert.strictEqual(shown.task_id, id)
        const isInDoubt = shown.status === "failed" && id !== tasks.at(-1)
        assert.strictEqual(shown.status, isInDoubt ? "failed" : "completed")
        assert.strictEqual(shown.error?.code, isInDoubt ? 3004 : undefined)
        const waited = await useTool(await tokenOf("owner"), "get_task", { task_id: id })
        assert.strictEqual(waited.json.result.structuredContent.status, shown.status)
        assert.strictEqual((await endOf(key, id)).status, "completed")
      }
    },
    tooLong
  )

  it(
    "no token or key of another user finds it, and no expired token reads it",
    async () => {
      const others = [await tokenOf("other"), othersKey]
      for (const id of tasks) {
        for (const other of others) {
          for (const method of ["tasks/get", "tasks/cancel"]) {
            const { json, text } = await send(other, method, { taskId: id })
            assert.strictEqual(json.error?.code, -32602, text)
          }
          const shown = await useTool(other, "get_task", { task_id: id })
          assert.isTrue(shown.json.result.isError, shown.text)
          assert.strictEqual(JSON.parse(shown.json.result.content[0].text).code, 2005)
        }
        const past = Math.floor(Date.now() / 1000) - 3600
        const expired = await tokenOf("owner", { iat: past, exp: past + 300 })
        const refused = await send(expired, "tasks/get", { taskId: id })
        assert.deepStrictEqual([refused.status, refused.json.code], [401, 1003])
      }
    },
    tooLong
  )

  it(
    "each call was bought and charged once, and no hold stays open",
    async () => {
      let completed = 0
      for (const id of tasks) {
        const { result } = await endOf(key, id)
        if (result.structuredContent.status === "completed") completed += 1
      }
      assert.strictEqual(new Set(tasks).size, killRounds)
      // The same call again is the same purchase
      assert.strictEqual(await callSurely(await tokenOf("owner"), "A quay 0"), tasks[0])
      gateway.useKey(key)
      const { json: listed } = await gateway.call("GET", "/manage/v1/tasks?limit=100")
      assert.deepStrictEqual(
        listed.data.map((it: { readonly id: string }) => it.id),
        tasks.toReversed()
      )
      const { json: wallet } = await gateway.call("GET", "/manage/v1/wallet")
      assert.strictEqual(wallet.held_balance, "0.00")
      assert.strictEqual(Number(wallet.available_balance), 1000 - completed * price)
      gateway.useKey(othersKey)
      const { json: others } = await gateway.call("GET", "/manage/v1/wallet")
      assert.strictEqual(Number(others.available_balance), 1000)
      assert.match((await gateway.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
    },
    tooLong
  )
})
