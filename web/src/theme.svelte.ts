/** Dark or light: as the system says, until somebody says otherwise here. */

export type Theme = "system" | "light" | "dark";

const KEPT = "windlass-theme";
const kept = localStorage.getItem(KEPT);

export const theme = $state<{ chosen: Theme }>({ chosen: kept === "light" || kept === "dark" ? kept : "system" });

export function applyTheme(): void {
  if (theme.chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.chosen;
}

export function nextTheme(): void {
  theme.chosen = { system: "dark", dark: "light", light: "system" }[theme.chosen] as Theme;
  if (theme.chosen === "system") localStorage.removeItem(KEPT);
  else localStorage.setItem(KEPT, theme.chosen);
  applyTheme();
}
