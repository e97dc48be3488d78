/** A consumer's program, for any runtime, that uses a running service. */
import {
  fileFrom,
  GatewayClient,
  TaskFailedError,
  ValidationError
} from "generation-gateway/client"

const { GATEWAY_API_KEY = "", GATEWAY_URL = "" } = process.env
const client = new GatewayClient({ baseUrl: GATEWAY_URL, apiKey: GATEWAY_API_KEY })

const hold = (fact: boolean, what: string) => {
  if (!fact) throw new Error(what)
}
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error
  )

const statuses: Array<string> = []
const created = await client.tasks.create("text-to-image-max", { prompt: "A lighthouse" })
const waited = await client.tasks.wait(created, { onProgress: (it) => statuses.push(it.status) })
hold(waited.id === created.id && statuses.at(-1) === "completed", `waited: ${statuses.join()}`)
const polled = await client.tasks.wait(created, { poll: true })
hold(polled.images.length === 1, "polled")

const edited = await client.tasks.run("image-edit", {
  prompt: "At night",
  images: [await fileFrom("picture.png")],
  n: 1
})
hold(edited.images.length === 1, "a file is uploaded")

const events = client.events.listen({ types: ["task.created"], since: created.created_at })
const { value } = await events.next()
hold(value?.task_id === created.id, "an event is heard")
await events.return(undefined)

const hanging = await client.tasks.create("text-to-image-max", { prompt: "[[sim:hang]]" })
const late = await errorOf(client.tasks.wait(hanging, { signal: AbortSignal.timeout(200) }))
hold(late instanceof Error && late.name === "TimeoutError", `aborted: ${String(late)}`)
const cancelled = await client.tasks.cancel(hanging)
hold(cancelled.error?.code === 4004, "cancelled")

const failed = await errorOf(client.tasks.run("text-to-image-max", { prompt: "[[sim:fail]]" }))
hold(failed instanceof TaskFailedError && failed.task.status === "failed", "a task fails")
const wrong = await errorOf(client.tasks.quote("text-to-image-max", { prompt: "" }))
hold(wrong instanceof ValidationError && wrong.faults[0]?.pointer === "#/prompt", "a fault")

let listed = 0
for await (const task of client.tasks.list({ limit: 2 })) if (task.id !== "") listed += 1
hold(listed >= 4, `listed: ${listed}`)
console.log("the client ran")
