/** Texts of the gallery. */
export const galleryTexts = {
  about: "Images and videos of the last 24 hours, newest first.",
  kind: "Kind",
  images: "Images",
  videos: "Videos",
  empty: "No pictures or videos yet",
  noMatch: "No results match these filters",
  emptyDetail: "Results appear here for 24 hours after their task has completed.",
  create: "Open the playground"
}
