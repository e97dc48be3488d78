/** Texts of the list of tasks. */
export const taskListTexts = {
  caption: "Tasks, newest first",
  search: "Search prompts and ids…",
  empty: "No tasks yet",
  emptyDetail: "Tasks appear here when you create them with the API or in the playground.",
  noMatch: "No tasks match these filters"
}
