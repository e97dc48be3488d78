import createClient from "openapi-fetch"
import type { paths } from "../made/openapi-typescript/schema"
import { body, pause } from "./outcome.ts"
import type { Gateway, Outcome } from "./outcome.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

export const createAndPoll = async ({ key, url }: Gateway): Promise<Outcome> => {
  const client = createClient<paths>({
    baseUrl: url,
    headers: { authorization: `Bearer ${key}` }
  })
  const priced = await client.POST(path, { body, params: { query: { dry_run: true } } })
  if (priced.data === undefined || "task_info" in priced.data) throw new Error("no quote")
  const quote: string = priced.data.quote.amount
  const created = await client.POST(path, { body })
  if (created.data === undefined || !("task_info" in created.data)) throw new Error("no task")
  const { id } = created.data.task_info
  for (;;) {
    const params = { path: { task_id: id } }
    const { data } = await client.GET(`${path}/{task_id}`, { params })
    if (data === undefined || typeof data === "string") throw new Error("no result")
    const { images = [], task_info } = data
    if (task_info.status === "completed" || task_info.status === "failed") {
      return { id, status: task_info.status, images, quote }
    }
    await pause()
  }
}
