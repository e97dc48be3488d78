import type { Scene } from "../../../src/sandbox/media/Scene.ts"
import type { SubmitRequest } from "../../../src/vendors/VendorClient.ts"

export const taskId = "0196f6a0-0000-7000-8000-000000000001"

export const scene = (changes: Partial<Scene> = {}): Scene => ({
  width: 1664,
  height: 928,
  prompt: "A red fox in the snow. 一只红色的狐狸",
  model: "text-to-image-max",
  seed: 42,
  index: 0,
  count: 1,
  ...changes
})

export const request = (
  model: string,
  body: Readonly<Record<string, unknown>>,
  id = taskId
): SubmitRequest => ({
  taskId: id,
  model,
  upstreamModel: "upstream",
  body,
  result: "images",
  media: []
})
