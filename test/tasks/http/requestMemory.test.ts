import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { request } from "node:http"
import { TaskChanges } from "../../../src/tasks/TaskChanges.ts"
import { eventually } from "../../support/gateway.ts"
import { keepsLessThan, kept, megabyte } from "../../support/heap.ts"
import { base64, pngOfBytes } from "../../support/media.ts"
import { call, json, Running, runningGateway } from "../../support/running.ts"
import type { Task } from "../../support/running.ts"

const edit = "/vendors/alibaba/v1/image-edit/generation"
const tasks = 8
const pictureBytes = 3 * megabyte
const picture = base64(pngOfBytes(pictureBytes))

const grownMax = (tasks * pictureBytes) / 4

describe("a waiting task", () => {
  layer(runningGateway(), { excludeTestServices: true })((it) => {
    it.effect(
      "keeps neither the request that created it nor its media in memory",
      () =>
        Effect.gen(function* () {
          const requests: Array<WeakRef<object>> = []
          const onRequest = (message: unknown) => {
            requests.push(new WeakRef((message as { readonly request: object }).request))
          }
          yield* Effect.acquireRelease(
            Effect.sync(() => subscribe("http.server.request.start", onRequest)),
            () => Effect.sync(() => unsubscribe("http.server.request.start", onRequest))
          )
          const body = { prompt: "a [[sim:slow=600s]]", images: [picture] }
          const create = Effect.gen(function* () {
            const response = yield* call(edit, json(body))
            assert.strictEqual(response.status, 202)
            return ((yield* Effect.promise(() => response.json())) as Task).task_info.id
          })
          yield* create
          const before = kept()
          const ids: Array<string> = []
          for (let n = 0; n < tasks; n += 1) ids.push(yield* create)
          // A connection keeps its last requests until the next ones
          for (let n = 0; n < 3; n += 1) yield* call(`${edit}/${ids[0]}`)
          yield* keepsLessThan(grownMax, before)
          const alive = requests.slice(0, tasks).filter((it) => it.deref() !== undefined)
          assert.lengthOf(alive, 0, "requests in memory")
          for (const id of ids) yield* call(`${edit}/${id}`, { method: "DELETE" })
        }).pipe(Effect.scoped),
      180_000
    )

    it.effect(
      "keeps no body in memory while its create waits for the end (Prefer: wait)",
      () =>
        Effect.gen(function* () {
          const { key, port } = yield* Running
          const changes = yield* TaskChanges
          // A single buffer, because fetch keeps what it sends until the response
          const body = Buffer.from(
            JSON.stringify({ prompt: "[[sim:slow=600s]]", images: [picture] })
          )
          const headers = {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            "content-length": body.length,
            prefer: "wait=60"
          }
          const send = Effect.acquireRelease(
            Effect.sync(() => {
              const sent = request({ port, path: edit, method: "POST", agent: false, headers })
              sent.on("error", () => {})
              sent.end(body)
              return sent
            }),
            (sent) => Effect.sync(() => sent.destroy())
          )
          const create = (count: number) =>
            Effect.andThen(
              send,
              eventually(
                Effect.sync(() => changes.size),
                (size) => size === count
              )
            )
          yield* create(1)
          const before = kept()
          for (let n = 2; n <= tasks + 1; n += 1) yield* create(n)
          yield* keepsLessThan(grownMax, before)
        }).pipe(Effect.scoped),
      180_000
    )

    it.effect(
      "keeps no body in memory while a tool waits for it (MCP)",
      () =>
        Effect.gen(function* () {
          const { key, port } = yield* Running
          const changes = yield* TaskChanges
          const path = "/vendors/alibaba/v1/text-to-image-max/generation"
          const ids: Array<string> = []
          for (let n = 0; n <= tasks; n += 1) {
            const created = yield* call(path, json({ prompt: "a [[sim:slow=600s]]" }))
            ids.push(((yield* Effect.promise(() => created.json())) as Task).task_info.id)
          }
          const waiting = changes.size
          const junk = "a".repeat(pictureBytes)
          const bodyOf = (id: string | undefined) =>
            Buffer.from(
              JSON.stringify({
                jsonrpc: "2.0",
                id: 1,
                method: "tools/call",
                params: {
                  name: "get_task",
                  arguments: { task_id: id, wait_seconds: 45 },
                  _meta: { junk, "io.modelcontextprotocol/clientCapabilities": [junk] },
                  // Parameters of other methods
                  cursor: junk,
                  clientInfo: { junk }
                }
              })
            )
          // A single buffer with a different id each time, because a client keeps what it sends until the response
          const body = bodyOf(ids[0])
          const place = body.indexOf(ids[0] ?? "")
          const headers = {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            "content-length": body.length,
            "mcp-protocol-version": "2025-11-25"
          }
          const wait = (count: number) =>
            Effect.andThen(
              Effect.acquireRelease(
                Effect.sync(() => {
                  body.write(ids[count - 1] ?? "", place)
                  const sent = request({
                    port,
                    path: "/mcp",
                    method: "POST",
                    agent: false,
                    headers
                  })
                  sent.on("error", () => {})
                  sent.end(body)
                  return sent
                }),
                (sent) => Effect.sync(() => sent.destroy())
              ),
              eventually(
                Effect.sync(() => changes.size),
                (size) => size === waiting + count
              )
            )
          yield* wait(1)
          const before = kept()
          for (let n = 2; n <= tasks + 1; n += 1) yield* wait(n)
          yield* keepsLessThan(grownMax, before)
          for (const id of ids) yield* call(`${path}/${id}`, { method: "DELETE" })
        }).pipe(Effect.scoped),
      180_000
    )
  })
})
