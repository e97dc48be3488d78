import type { bodies, Label } from "./Bodies.ts"

/** Bodies for the documentation; a test decodes each by its schema. */
export const examples: { readonly [L in Label]: (typeof bodies)[L]["Encoded"] } = {
  "text-to-video-spark": {
    prompt: "A lighthouse at dawn, waves rolling in, gulls circling",
    size: "1280*720",
    duration: 5,
    audio: true
  },
  "keyframe-to-video-plus": {
    prompt: "The flower opens slowly in the morning light",
    image: "https://example.com/bud.png",
    last_frame: "https://example.com/flower.png"
  },
  "image-edit": {
    prompt: "Put the cup on the wooden table",
    images: ["https://example.com/cup.png", "https://example.com/table.jpg"],
    size: "1280*1280",
    n: 1
  },
  "text-to-image-max": { prompt: "A lighthouse at dawn", size: "1328*1328", seed: 7 },
  "image-edit-pro": {
    prompt: "Turn the photo into a watercolour",
    images: ["https://example.com/photo.jpg"],
    aspect_ratio: "3:2",
    resolution: "2K"
  },
  "image-edit-max": {
    prompt: "Replace the sky with a sunset",
    images: ["https://example.com/street.jpg"]
  },
  "text-to-image-preview": { prompt: "A paper boat on a lake" },
  "image-to-video-spark": {
    prompt: "The boat drifts away",
    image: "https://example.com/boat.png"
  },
  "video-edit-plus": {
    function: "image_reference",
    prompt: "The child plays with the dog on the beach",
    images: ["https://example.com/child.png", "https://example.com/dog.png"]
  }
}
