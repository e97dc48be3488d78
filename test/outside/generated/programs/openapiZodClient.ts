import { createApiClient, schemas } from "../made/openapi-zod-client/client"
import { body, pause } from "./outcome.ts"
import type { Gateway, Outcome } from "./outcome.ts"

export const createAndPoll = async ({ key, url }: Gateway): Promise<Outcome> => {
  const client = createApiClient(url, {
    axiosConfig: { headers: { authorization: `Bearer ${key}` } }
  })
  const create = client.create_alibaba_text_to_image_max_generation
  const priced = await create(body, { queries: { dry_run: true } })
  const quote: string = schemas.Quote.parse(priced).quote.amount
  const created = await create(body)
  const { id } = schemas.CreatedTask.parse(created).task_info
  for (;;) {
    const { images = [], task_info } = await client.get_alibaba_text_to_image_max_generation({
      params: { task_id: id }
    })
    if (task_info.status === "completed" || task_info.status === "failed") {
      return { id, status: task_info.status, images, quote }
    }
    await pause()
  }
}
