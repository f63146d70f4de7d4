// Uses the plugin as a library it is linked with.
void plugin_use(void);
int main(void) { plugin_use(); return 0; }
