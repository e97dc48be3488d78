import { Effect, Redacted } from "effect"
import type { Stream } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { GatewayClient as EffectClient } from "../../../src/client/effect.ts"
import { GatewayClient } from "../../../src/client/index.ts"
import type { Api, ClientError, List, Task } from "../../../src/client/index.ts"

// Checked by `tsc` in `npm run check`; nothing is sent
const { apiKeys, list, request, tasks, wallet }: GatewayClient = new GatewayClient({
  baseUrl: "http://gateway.test",
  apiKey: "sk-test"
})

const blob = new Blob([])

describe("the types of the client", () => {
  it("know the bodies of the built-in models", () => {
    const calls = () => {
      void tasks.create("text-to-image-max", {
        prompt: "A",
        size: "1328*1328",
        metadata: { a: "b" }
      })
      void tasks.create("image-edit", { prompt: "A", images: ["https://a/b.png", blob] })
      void tasks.run("video-edit-plus", { function: "video_edit", prompt: "A" })
      // @ts-expect-error -- no such field
      void tasks.create("text-to-image-max", { prompt: "A", colour: "red" })
      // @ts-expect-error -- unknown size
      void tasks.create("text-to-image-max", { prompt: "A", size: "1*1" })
      // @ts-expect-error -- the prompt is missing
      void tasks.quote("text-to-image-max", {})
      const edit = { function: "video_edit", prompt: "A" } as const
      // @ts-expect-error -- no bytes where the body takes a URL only
      void tasks.run("video-edit-plus", { ...edit, video_url: blob })
      // @ts-expect-error -- unknown model
      void tasks.create("text-to-image-mx", { prompt: "A" })
    }
    expectTypeOf(calls).toBeFunction()
  })

  it("accept any body for other models", () => {
    const calls = () => {
      void tasks.create("fal/flux-dev", { prompt: "A", any: 1 })
      void tasks.create<"fal/flux-dev">("fal/flux-dev", {})
      // @ts-expect-error -- a body is an object
      void tasks.create("fal/flux-dev", "A")
    }
    expectTypeOf(calls).toBeFunction()
  })

  it("know the results", () => {
    expectTypeOf(tasks.wait).returns.resolves.toEqualTypeOf<Task>()
    expectTypeOf(tasks.list).returns.toEqualTypeOf<List<Api.TaskListItem>>()
    expectTypeOf(wallet.get).returns.resolves.toEqualTypeOf<Api.Wallet>()
    expectTypeOf<Parameters<typeof apiKeys.create>[0]>().toEqualTypeOf<Api.NewApiKey>()
    // A task of a list identifies a task, as does a task itself
    expectTypeOf<Api.TaskListItem>().toExtend<Parameters<typeof tasks.get>[0]>()
    expectTypeOf<Task>().toExtend<Parameters<typeof tasks.get>[0]>()
  })

  it("know routes by their names, and accept other routes", () => {
    const calls = () => {
      const wallet = request("GET /manage/v1/wallet")
      expectTypeOf(wallet).resolves.toEqualTypeOf<Api.Wallet>()
      const task = request("GET /manage/v1/tasks/{id}", { path: { id: "a" } })
      expectTypeOf(task).resolves.toEqualTypeOf<Api.TaskTimeline>()
      const other = request("POST /v1/embeddings", { body: { model: "a" } })
      expectTypeOf(other).resolves.toBeUnknown()
      expectTypeOf(list("GET /manage/v1/users")).toEqualTypeOf<List<Api.ListedUser>>()
      // @ts-expect-error -- the path is missing
      void request("GET /manage/v1/tasks/{id}")
      // @ts-expect-error -- no such field
      void request("PATCH /manage/v1/wallet", { body: { threshold: "1" } })
      // @ts-expect-error -- unknown filter
      void list("GET /manage/v1/users", { colour: "red" })
      // @ts-expect-error -- not a list
      void list("GET /manage/v1/wallet")
      // @ts-expect-error -- not a route
      void request("wallet")
    }
    expectTypeOf(calls).toBeFunction()
  })

  it("are the same for Effects, which also have typed errors", () => {
    const program = Effect.gen(function* () {
      const client = yield* EffectClient
      expectTypeOf(client.wallet.get()).toEqualTypeOf<Effect.Effect<Api.Wallet, ClientError>>()
      expectTypeOf(client.tasks.watch).returns.toEqualTypeOf<Stream.Stream<Task, ClientError>>()
      expectTypeOf(client.calls.list()).toEqualTypeOf<Stream.Stream<Api.Call, ClientError>>()
      const wrong = () => {
        // @ts-expect-error -- no such field
        return client.tasks.create("text-to-image-max", { prompt: "A", colour: "red" })
      }
      expectTypeOf(wrong).toBeFunction()
      // The Stream has its own signal, which ends it
      type Watch = NonNullable<Parameters<typeof client.tasks.watch>[1]>
      expectTypeOf<Watch>().not.toHaveProperty("signal")
      return yield* client.tasks
        .run("text-to-image-max", { prompt: "A" })
        .pipe(Effect.catchTag("TaskFailedError", ({ task }) => Effect.succeed(task)))
    })
    expectTypeOf<Effect.Success<typeof program>>().toEqualTypeOf<Task>()
    expectTypeOf<Extract<Effect.Error<typeof program>, { _tag: "TaskFailedError" }>>().toBeNever()
    expectTypeOf(EffectClient.layer).toBeCallableWith({
      baseUrl: "http://gateway.test",
      apiKey: Redacted.make("sk-test")
    })
  })
})
