import { mount } from "svelte";
import App from "./App.svelte";
import { startClock } from "./clock.svelte.ts";
import { startRouting } from "./router.svelte.ts";
import "./styles/app.css";
import { applyTheme } from "./theme.svelte.ts";

applyTheme();
startRouting();
startClock();
mount(App, { target: document.getElementById("page")! });
