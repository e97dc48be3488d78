import { Ago } from "../Values.tsx"
import type { Column } from "./PagedTable.tsx"

/** When a row was created. */
export const createdColumn = (title: string): Column<{ readonly created_at: string }> => ({
  title,
  isNumber: true,
  isPlain: true,
  cell: ({ created_at: at }) => <Ago at={at} />
})
