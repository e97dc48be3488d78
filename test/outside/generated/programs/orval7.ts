import {
  createAlibabaTextToImageMaxGeneration as create,
  getAlibabaTextToImageMaxGeneration as get
} from "../made/orval-7/client"
import { useGateway } from "./orvalFetch.ts"
import { body, pause } from "./outcome.ts"
import type { Gateway, Outcome } from "./outcome.ts"

export const createAndPoll = async (gateway: Gateway): Promise<Outcome> => {
  useGateway(gateway)
  const priced = await create(body, { dry_run: true })
  if (priced.status !== 200 || "task_info" in priced.data) throw new Error("no quote")
  const quote: string = priced.data.quote.amount
  const created = await create(body)
  if (created.status !== 202) throw new Error("no task")
  const { id } = created.data.task_info
  for (;;) {
    const result = await get(id)
    if (result.status !== 200 || typeof result.data === "string") throw new Error("no result")
    const { images = [], task_info } = result.data
    if (task_info.status === "completed" || task_info.status === "failed") {
      return { id, status: task_info.status, images, quote }
    }
    await pause()
  }
}
