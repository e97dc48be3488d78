import { modelTexts } from "./models.ts"

/** Texts of the playground. They load with its page, after the first paint. */
export const playgroundTexts = {
  model: "Model",
  kinds: { ...modelTexts.kinds, token: "Chat" },
  recent: "Recent",
  choose: "Choose a model…",
  noModel: "Choose a model to start.",
  unknown: (name: string) => `There is no model ${name}. Choose another one.`,
  readOnly: "You are viewing as a user and cannot run anything here.",
  result: "Result",
  noResult: "The model's output appears here.",
  priceLater: "Fill in the required fields to see the price.",
  priceRefused: "Correct the marked fields to see the price.",
  run: "Run",
  runAgain: "Run again",
  toTask: "View task",
  charged: "Charged",
  working: "Working…",
  media: {
    url: "https://…",
    orUrl: "or paste a URL",
    drop: "Drop a file here, or choose one",
    file: (name: string) => `for ${name}`,
    remove: "Remove",
    chosen: (name: string, size: string) => `${name}, ${size}`,
    preview: "Preview",
    types: (names: string) => names,
    upTo: (size: string) => `up to ${size}`,
    sides: (least: number, most: number | null) =>
      most === null ? `sides of at least ${least} px` : `sides of ${least} to ${most} px`,
    seconds: (least: number, most: number) => `${least} to ${most} seconds`,
    byUrl: "by URL only",
    wrongType: (given: string) => `This model does not accept ${given || "this type of file"}`,
    tooLarge: (size: string) => `The file is too large: ${size}`,
    wrongSides: (width: number, height: number) => `The image has ${width} × ${height} px`,
    reading: "The file is still being read",
    unreadable: "The file cannot be read as an image",
    omitted: (name: string) => `<Base64 of ${name}>`
  },
  code: "Code",
  codeHelp: "The same request from your program. Set GATEWAY_API_KEY to your API key.",
  language: "Language",
  runs: {
    title: "Recent runs",
    none: "Your runs in this browser appear here. Select one to fill in its prompt and settings.",
    link: "link",
    copyLink: "Copy link",
    linkHelp: "Fills in the prompt and settings, without files."
  }
}
