import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"
import { request as send } from "node:http"
import { fileURLToPath } from "node:url"
import type * as Client from "../../../src/client/index.ts"
import { browser } from "../../support/chromium.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import { png } from "../../support/media.ts"
import { Running, runningGateway } from "../../support/running.ts"
import { until } from "../../support/until.ts"

/**
 * docs/client.md: the client in a browser. The gateway sends no CORS headers, so a page calls its own server, which
 * here is a proxy to the gateway.
 */

const root = fileURLToPath(new URL("../../../", import.meta.url))

/** Bundled as a page loads it: one module without Node APIs. */
const bundle = Effect.promise(async () => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ["src/client/index.ts"],
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    write: false
  })
  return outputFiles[0]!.text
})

const html = `<!doctype html><script type="module">
  import * as client from "/client.js"
  globalThis.gatewayClient = client
</script>`

/** A page with the gateway behind the same origin. */
const site = (module: string, gatewayUrl: string) =>
  localServer((request, response) => {
    const { headers, method, url = "/" } = request
    if (url === "/") return response.writeHead(200, { "content-type": "text/html" }).end(html)
    if (url === "/client.js") {
      return response.writeHead(200, { "content-type": "text/javascript" }).end(module)
    }
    const forwarded = send(`${gatewayUrl}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    forwarded.on("error", () => response.destroy())
    response.on("close", () => forwarded.destroy())
    return request.pipe(forwarded)
  })

const page = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const context = await (await browser()).newContext()
        const opened = await context.newPage()
        await opened.goto(url)
        await until(() => opened.evaluate<boolean>("globalThis.gatewayClient !== undefined"))
        return { context, opened }
      }),
      ({ context }) => Effect.promise(() => context.close())
    ),
    ({ opened }) => opened
  )

interface Given {
  readonly key: string
  readonly gateway: string
  readonly own: string
  readonly picture: string
}

/** Runs in the page. */
const program = async ({ gateway, key, own, picture }: Given) => {
  const { ConnectionError, fileFrom, GatewayClient, TaskFailedError, ValidationError } = (
    globalThis as unknown as { gatewayClient: typeof Client }
  ).gatewayClient
  const client = new GatewayClient({ baseUrl: own, apiKey: key })
  const statuses: Array<string> = []
  const prompt = "A lighthouse"
  const created = await client.tasks.create("text-to-image-max", { prompt })
  const waited = await client.tasks.wait(created, { onProgress: (it) => statuses.push(it.status) })
  const events = client.events.listen({ types: ["task.created"], since: created.created_at })
  const heard = (await events.next()).value
  await events.return(undefined)
  const bytes = Uint8Array.from(atob(picture), (it) => it.codePointAt(0) ?? 0)
  const edited = await client.tasks.run("image-edit", {
    prompt,
    images: [new File([bytes], "picture.png", { type: "image/png" })],
    n: 1
  })
  const hanging = await client.tasks.create("text-to-image-max", { prompt: "[[sim:hang]]" })
  const cancelled = await client.tasks.cancel(hanging)
  const errorOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (it) => it
    )
  const failing = await errorOf(client.tasks.run("text-to-image-max", { prompt: "[[sim:fail]]" }))
  const wrong = await errorOf(client.tasks.quote("text-to-image-max", { prompt: "" }))
  const aborted = await errorOf(
    client.tasks.wait(await client.tasks.create("text-to-image-max", { prompt: "[[sim:hang]]" }), {
      signal: AbortSignal.timeout(300)
    })
  )
  const elsewhere = new GatewayClient({ baseUrl: gateway, apiKey: key, maxRetries: 0 })
  return {
    waited: [created.id === waited.id, waited.images.length, statuses.at(-1)],
    heard: heard?.task_id === created.id,
    edited: edited.images.length,
    cancelled: cancelled.error?.code,
    failing: failing instanceof TaskFailedError,
    wrong: wrong instanceof ValidationError && wrong.faults[0]?.pointer,
    aborted: aborted instanceof DOMException && aborted.name,
    listed: (await client.tasks.list({ limit: 2 }).page()).data.length,
    otherOrigin: (await errorOf(elsewhere.wallet.get())) instanceof ConnectionError,
    noFiles: (await errorOf(fileFrom("x.png"))) instanceof TypeError
  }
}

liveLayer(runningGateway())((it) => {
  it.effect("creates, waits, runs, uploads, cancels and listens in a page of the same origin", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const own = yield* site(yield* bundle, url)
      const opened = yield* page(own)
      const picture = Buffer.from(png({ width: 512, height: 512 })).toString("base64")
      const seen = yield* Effect.promise(() =>
        opened.evaluate(program, { key, gateway: url, own, picture })
      )
      assert.deepStrictEqual(seen, {
        waited: [true, 1, "completed"],
        heard: true,
        edited: 1,
        cancelled: 4004,
        failing: true,
        wrong: "#/prompt",
        aborted: "TimeoutError",
        listed: 2,
        otherOrigin: true,
        noFiles: true
      })
    }).pipe(Effect.scoped)
  )
})
