import type { Schemas } from "../../api/schema.ts"
import { taskTitle } from "../../format/prompt.ts"
import { texts } from "../../texts/en.ts"
import { Link } from "../Link.tsx"
import { PreviewMedia } from "../media/Preview.tsx"

/** Results as a grid. Each shows the prompt of its task and links to it. */
export const TaskGallery = ({
  tasks
}: {
  readonly tasks: ReadonlyArray<Schemas["TaskListItem"]>
}) => (
  <ul class="gallery">
    {tasks.map((task) => (
      <li key={task.id}>
        <Link to={`/tasks/${task.id}`}>
          {task.preview !== undefined && <PreviewMedia of={task.preview} />}
          <span>{taskTitle(task)}</span>
          {task.preview !== undefined && task.preview.count > 1 && (
            <span class="faint">{texts.media.more(task.preview.count - 1)}</span>
          )}
        </Link>
      </li>
    ))}
  </ul>
)
