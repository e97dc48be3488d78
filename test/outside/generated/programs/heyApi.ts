import {
  createAlibabaTextToImageMaxGeneration as create,
  getAlibabaTextToImageMaxGeneration as get
} from "../made/hey-api"
import { createClient } from "../made/hey-api/client"
import { body, pause } from "./outcome.ts"
import type { Gateway, Outcome } from "./outcome.ts"

export const createAndPoll = async ({ key, url }: Gateway): Promise<Outcome> => {
  const client = createClient({ baseUrl: url, auth: () => key })
  const priced = await create({ client, body, query: { dry_run: true }, throwOnError: true })
  if ("task_info" in priced.data) throw new Error("no quote")
  const quote: string = priced.data.quote.amount
  const created = await create({ client, body, throwOnError: true })
  if (!("task_info" in created.data)) throw new Error("no task")
  const { id } = created.data.task_info
  for (;;) {
    const { data } = await get({ client, path: { task_id: id }, throwOnError: true })
    if (typeof data === "string") throw new Error("not JSON")
    const { images = [], task_info } = data
    if (task_info.status === "completed" || task_info.status === "failed") {
      return { id, status: task_info.status, images, quote }
    }
    await pause()
  }
}
