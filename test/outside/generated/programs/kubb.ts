import { setConfig } from "@kubb/plugin-client/clients/fetch"
import {
  createAlibabaTextToImageMaxGeneration as create,
  createAlibabaTextToImageMaxGenerationMutationResponseSchema as createdSchema,
  getAlibabaTextToImageMaxGeneration as get,
  getAlibabaTextToImageMaxGenerationQueryResponseSchema as resultSchema
} from "../made/kubb"
import { body, pause } from "./outcome.ts"
import type { Gateway, Outcome } from "./outcome.ts"

export const createAndPoll = async ({ key, url }: Gateway): Promise<Outcome> => {
  // It does not send the type of the body by itself
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
  setConfig({ baseURL: url, headers })
  const priced = await create({ data: body, params: { dry_run: true } })
  if ("task_info" in priced) throw new Error("no quote")
  const quote: string = priced.quote.amount
  const created = createdSchema.parse(await create({ data: body }))
  if (!("task_info" in created)) throw new Error("no task")
  const { id } = created.task_info
  for (;;) {
    const { images = [], task_info } = resultSchema.parse(await get({ task_id: id }))
    if (task_info.status === "completed" || task_info.status === "failed") {
      return { id, status: task_info.status, images, quote }
    }
    await pause()
  }
}
