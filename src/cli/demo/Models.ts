import { picture } from "./Media.ts"
import type { Medium } from "./Media.ts"

/** A task of the demo: its request and the expected result. */
export interface Model {
  readonly name: string
  /** The task's name in the report. */
  readonly title: string
  readonly vendor: string
  readonly action: "generation" | "edit"
  readonly body: Readonly<Record<string, unknown>>
  readonly outcome: "completed" | "failed"
  readonly result: "images" | "videos"
  readonly count: number
  readonly expected: Medium
}

const seed = 7

/** One task of each of five models, with real inputs. */
export const models = (): ReadonlyArray<Model> => [
  {
    name: "text-to-image-max",
    title: "text-to-image-max",
    outcome: "completed",
    vendor: "alibaba",
    action: "generation",
    body: { prompt: "A lighthouse at dawn, 黎明的灯塔", size: "1328*1328", seed },
    result: "images",
    count: 1,
    expected: { format: "PNG", width: 1328, height: 1328 }
  },
  {
    name: "image-edit",
    title: "image-edit",
    outcome: "completed",
    vendor: "alibaba",
    action: "generation",
    body: {
      prompt: "Put the first picture into the frame of the second",
      images: [picture(640, 480, 40), picture(480, 640, 200)],
      size: "1024*768",
      n: 2,
      seed
    },
    result: "images",
    count: 2,
    expected: { format: "PNG", width: 1024, height: 768 }
  },
  {
    name: "image-edit-pro",
    title: "image-edit-pro",
    outcome: "completed",
    vendor: "google",
    action: "edit",
    body: {
      prompt: "Turn day into night",
      images: [picture(512, 512, 120)],
      aspect_ratio: "1:1",
      resolution: "1K"
    },
    result: "images",
    count: 1,
    expected: { format: "PNG", width: 1024, height: 1024 }
  },
  {
    name: "text-to-video-spark",
    title: "text-to-video-spark",
    outcome: "completed",
    vendor: "service",
    action: "generation",
    body: { prompt: "Waves roll onto a beach", size: "1280*720", duration: 5, seed },
    result: "videos",
    count: 1,
    expected: { format: "MP4", width: 1280, height: 720, seconds: 5 }
  },
  {
    name: "keyframe-to-video-plus",
    title: "keyframe-to-video-plus",
    outcome: "completed",
    vendor: "alibaba",
    action: "generation",
    body: {
      prompt: "The sky turns from blue to red",
      image: picture(960, 540, 220),
      last_frame: picture(960, 540, 20),
      seed
    },
    result: "videos",
    count: 1,
    expected: { format: "MP4", width: 1280, height: 720, seconds: 5 }
  }
]

/** A task that fails, because a directive in its prompt makes the simulator refuse it. */
export const refused: Model = {
  name: "text-to-image-max",
  title: "the refused task",
  outcome: "failed",
  vendor: "alibaba",
  action: "generation",
  body: { prompt: "[[sim:refuse]] Something the vendor will not draw" },
  result: "images",
  count: 0,
  expected: { format: "PNG", width: 0, height: 0 }
}
