/** Texts of chats in the playground. They load with the first chat. */
export const chatTexts = {
  system: "System prompt",
  message: "Message",
  attach: "Attach image",
  attachHelp: (size: string) => `PNG, JPEG or WEBP, up to ${size}. Or drop or paste one.`,
  wrongType: (name: string) => `${name} is not a PNG, JPEG or WEBP image`,
  tooLarge: (name: string, most: string) => `${name} is larger than ${most}`,
  tooMany: (most: number) => `A message can have at most ${most} images`,
  pictureOf: (n: number) => `Attached image ${n}`,
  lostPictures: (count: number) =>
    count === 1
      ? "1 image, which is no longer sent after the reload"
      : `${count} images, which are no longer sent after the reload`,
  maxTokens: "Maximum output tokens",
  temperature: "Temperature",
  temperatureHelp: "Empty: the model's default",
  send: "Send",
  stop: "Stop",
  again: "New chat",
  you: "You",
  model: "Model",
  empty: "Write a message. The response appears as it arrives.",
  talk: "Conversation",
  answering: "The model is writing…",
  stopped: "Stopped",
  cost: (credits: string) => `${credits} credits`,
  tokens: (input: string, output: string) => `${input} tokens in, ${output} out`,
  first: (duration: string) => `first token after ${duration}`,
  toCall: "Receipt",
  embedding: "This model returns vectors, which are not shown here. The code below requests one."
}
